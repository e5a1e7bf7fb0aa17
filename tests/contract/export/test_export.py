"""The pipeline's promises: the model stays as it is, bytes are reproducible, bad input leaves nothing behind."""

from __future__ import annotations

import copy
import hashlib
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.errors import CaptureError, InputError, ParityError, UnsupportedOpsError, WriteError
from tests.releases import NEWEST


class Net(nn.Module):
    """Parameters, a buffer, a tied weight, a hook and one frozen parameter: all must survive."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.second = nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.rnn = nn.LSTM(5, 3, bidirectional=True)
        self.register_buffer("scale", torch.randn(5))
        self.first.bias.requires_grad_(False)
        self.calls = 0
        self.sizes, self.pairs = [1, [2]], {"a": ([3],)}
        self.first.register_forward_hook(lambda *_: None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.second(self.first(x)))
        y[:, :1] = 0.5
        return self.rnn(y)[0]


def snapshot(model: nn.Module) -> list[object]:
    facts: list[object] = [type(model), sorted(model.__dict__)]
    for name, module in model.named_modules():
        attributes = {
            key: (id(value), list(map(id, value)) if isinstance(value, list) else 0)
            for key, value in vars(module).items()
        }
        facts.append((name, type(module), module.training, len(module._forward_hooks), attributes))
    for name, tensor in [*model.named_parameters(remove_duplicate=False), *model.named_buffers()]:
        digest = hashlib.sha256(tensor.detach().numpy().tobytes()).hexdigest()
        facts.append((name, type(tensor), id(tensor), tensor.requires_grad, tensor.dtype, digest, tensor.grad))
    return facts


@pytest.fixture
def net() -> Net:
    torch.manual_seed(3)
    return Net().eval()


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(4)
    return torch.randn(7, 4, 5)


def test_the_model_is_bit_identical_after_an_export(net: Net, x: torch.Tensor, tmp_path: Path) -> None:
    before, original = snapshot(net), x.clone()
    result = ModelExport(net, (x,), dynamic_axes={"x": {0: "T"}}).to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz")
    result.assert_parity("approximate")
    assert snapshot(net) == before
    assert torch.equal(x, original)
    copy.deepcopy(net)  # what torch_to_nnef's users could not do any more


def test_the_model_is_bit_identical_after_a_failed_export(x: torch.Tensor, tmp_path: Path) -> None:
    class Unsupported(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(super().forward(x)[..., :4, :4]).real

    net = Unsupported().eval()
    before = snapshot(net)
    with pytest.raises(UnsupportedOpsError):
        ModelExport(net, (x,)).to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz")
    assert snapshot(net) == before
    assert list(tmp_path.iterdir()) == []


def test_a_training_model_keeps_its_mode(x: torch.Tensor, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU())  # as built: in training mode, which means nothing to these
    ModelExport(net, (x,)).to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz").assert_parity("approximate")
    assert all(m.training for m in net.modules())


@pytest.mark.parametrize(
    "module",
    [nn.Dropout(0.3), nn.LSTM(5, 3, num_layers=2, dropout=0.2), nn.BatchNorm1d(4)],
    ids=["dropout", "lstm-dropout", "batch-norm"],
)
def test_active_training_behaviour_is_refused_by_option(module: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    before = snapshot(module.train())
    with pytest.raises((UnsupportedOpsError, CaptureError), match=r"model\.eval\(\)"):
        ModelExport(module, (x,), training="refuse").to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz")
    assert snapshot(module) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".nnef.tgz", ".tar"])
def test_two_exports_are_the_same_bytes(net: Net, x: torch.Tensor, tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for file in files:
        ModelExport(net, (x,), dynamic_axes={"x": {0: "T", 1: "B"}}).to(TractNNEF(NEWEST), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_one_capture_serves_several_targets(net: Net, x: torch.Tensor, tmp_path: Path) -> None:
    shared = ModelExport(net, (x,))
    for version in ("0.19.15", NEWEST):
        reference = ModelExport(net, (x,)).to(TractNNEF(version), tmp_path / f"own-{version}.tgz")
        result = shared.to(TractNNEF(version), tmp_path / f"shared-{version}.tgz")
        assert result.archive.read_bytes() == reference.archive.read_bytes()
        result.assert_parity("approximate")


def test_a_failed_check_removes_the_archive(x: torch.Tensor, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 3), nn.Tanh()).eval()  # sums alone may be exact, which depends on the processor
    target = TractNNEF(NEWEST, check_io_tolerance="exact")
    with pytest.raises(ParityError, match="exact") as caught:
        export_model_to_nnef(net, (x,), tmp_path / "m.nnef.tgz", target)
    assert "max abs" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_all_unsupported_operators_are_named_at_once(x: torch.Tensor, tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.linalg.eigvals(x @ x.mT).real, torch.special.zeta(x, x)

    with pytest.raises(UnsupportedOpsError) as caught:
        ModelExport(Two(), (x,)).to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz")
    text = str(caught.value)
    assert len(caught.value.problems) == 2
    assert "linalg_eigvals" in text
    assert "aten::special_zeta" in text
    assert f"{Path(__file__).name}:" in text
    assert "return torch.linalg.eigvals(x @ x.mT).real" in text
    assert "hint:" in text


def test_many_statements_of_one_operator_are_told_once(tmp_path: Path) -> None:
    class Exclusive(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([row ^ 3 for row in x])

    with pytest.raises(UnsupportedOpsError, match="of this model cannot be exported") as caught:
        ModelExport(Exclusive(), (torch.arange(240).reshape(120, 2),)).to(KhronosNNEF(), tmp_path / "m.nnef.tgz")
    assert len(caught.value.problems) > 90
    text = str(caught.value)
    assert text.count("aten::__xor__.Scalar at") == 1
    assert re.search(r"and \d{3,} more", text)
    assert len(text) < 1500


def test_an_operator_that_only_newer_versions_have_says_since_when(tmp_path: Path) -> None:
    from t2n_core.nnef.emitter import Emitter
    from t2n_core.nnef.graph import Value
    from t2n_core.op.registry import Registry, load_default, op

    rules: Registry = load_default().copy()
    rules.remove("aten::relu")

    @op("aten::relu", registry=rules)
    def relu(g: Emitter, self: Value) -> Value:
        return g.tract_core_silu(self)

    with pytest.raises(UnsupportedOpsError, match=r"available since 0\.23\.0"):
        ModelExport(nn.ReLU(), (torch.randn(3, 4),), rules=rules).to(TractNNEF("0.21.19"), tmp_path / "m.tgz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_names": ["a", "b"]}, "2 input names for 1 input tensors"),
        ({"output_names": ["a", "b"]}, "2 output names for 1 outputs"),
        ({"input_names": ["a"], "output_names": ["a"]}, "must all differ"),
        ({"dynamic_axes": {"y": {0: "T"}}}, "names `y`; the inputs are x, the outputs output"),
        ({"dynamic_axes": {"x": {3: "T"}}}, "there is no axis 3"),
        ({"dynamic_axes": {"x": {0: "T-1"}}}, "is not a symbol"),
        ({"args": ()}, "missing a required argument"),
        ({"kwargs": {"nonsense": 1}}, "cannot take these arguments"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(
    net: Net, x: torch.Tensor, tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    arguments = {"args": (x,), **arguments}
    with pytest.raises(InputError, match=message):
        ModelExport(net, **arguments).to(TractNNEF(NEWEST), tmp_path / "m.tgz")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_path_is_named_before_the_capture(net: Net, x: torch.Tensor, tmp_path: Path) -> None:
    export = ModelExport(net, (x,))
    with pytest.raises(WriteError, match=r"the folder .*missing/folder does not exist"):
        export.to(TractNNEF(NEWEST), tmp_path / "missing" / "folder" / "m.tgz")
    assert "capture" not in export.times


def test_a_model_that_fixes_its_dynamic_axis_is_refused(x: torch.Tensor, tmp_path: Path) -> None:
    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(7, 4, 5)

    with pytest.raises(CaptureError):
        ModelExport(Fixed(), (x,), dynamic_axes={"x": {0: "T"}}).to(TractNNEF(NEWEST), tmp_path / "m.tgz")


def test_a_python_loop_over_the_size_is_caught(x: torch.Tensor, tmp_path: Path) -> None:
    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total = x[0]
            for step in x[1:]:
                total = total + step
            return total

    with pytest.raises(CaptureError):
        ModelExport(Loop(), (x,), dynamic_axes={"x": {0: "T"}}).to(TractNNEF(NEWEST), tmp_path / "m.tgz")


def test_a_capture_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    calls = []

    class Refused(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return x + float(x.sum())

    export = ModelExport(Refused(), (torch.randn(3, 4),))
    messages = []
    for version in ("0.19.15", "0.21.19", NEWEST):
        with pytest.raises(CaptureError) as caught:
            export.to(TractNNEF(version), tmp_path / "m.tgz")
        messages.append((str(caught.value), len(calls)))
    assert len(set(messages)) == 1, "neither another answer nor another call"


def test_a_stateful_model_is_refused(x: torch.Tensor, tmp_path: Path) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x + self.count

    with pytest.raises(CaptureError, match="writes its buffer `count`"):
        ModelExport(Counting(), (x,)).to(TractNNEF(NEWEST), tmp_path / "m.tgz")


class Overwriting(nn.Module):
    """Writes its buffer before it reads it, or after."""

    def __init__(self, first: bool) -> None:
        super().__init__()
        self.first = first
        self.register_buffer("factors", torch.arange(5.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if self.first else x + self.factors
        self.factors.copy_(torch.where(x.mean() > 0, x.flatten(0, -2).amax(0), torch.tensor(2.0)))
        return y * self.factors


def test_a_buffer_that_is_written_before_it_is_read_is_no_state(x: torch.Tensor, tmp_path: Path) -> None:
    ModelExport(Overwriting(first=True), (x,)).to(TractNNEF(NEWEST), tmp_path / "m.tgz").assert_parity()
    with pytest.raises(CaptureError, match="writes its buffer `factors`"):
        ModelExport(Overwriting(first=False), (x,)).to(TractNNEF(NEWEST), tmp_path / "m.tgz")


def test_inputs_and_weights_as_outputs_are_copied(x: torch.Tensor, tmp_path: Path) -> None:
    class Through(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, 2))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y = torch.relu(x)
            return x, self.w, y, y

    for version in ("0.19.15", NEWEST):
        ModelExport(Through(), (x,)).to(TractNNEF(version), tmp_path / "m.tgz").assert_parity("exact")
