"""Weights in blocks of 4 bits and of 8 bits, on real engines."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, StoredAs, TractNNEF
from t2n_core.engine.pool import engine_for
from t2n_core.errors import InputError
from t2n_core.op.stored.scales import least_error, percentile
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.profiling.profile import profile_archive
from tests.contract.options.exports import every_line, exported
from tests.nets import net_of
from tests.releases import NEWEST


class Tagger(nn.Module):
    """An embedding, linear layers with and without whole blocks, one weight that something else reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 64)
        self.up = nn.Linear(64, 96)
        self.down = nn.Linear(96, 64, bias=False)
        self.odd = nn.Linear(64, 33)
        self.last = nn.Linear(33, 5)
        self.shared = nn.Parameter(torch.randn(5, 32))

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(tokens)
        x = x + self.down(F.relu(self.up(x)))
        return self.last(torch.tanh(self.odd(x))), F.linear(x[..., :32], self.shared) + self.shared.sum()


class Convolutions(nn.Module):
    """Kernels of one to three axes, in groups, with a norm behind, and such that no release reads in blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(3, 32, 7, padding=3)
        self.line = nn.Conv1d(32, 30, 3, bias=False)
        self.norm = nn.BatchNorm1d(30)
        self.groups = nn.Conv1d(30, 64, 32, groups=2, padding=16, stride=2)
        self.plane = nn.Conv2d(8, 32, (2, 2), dilation=(1, 2), padding=1)
        self.depthwise = nn.Conv2d(32, 32, (8, 4), groups=32, padding=4)
        self.space = nn.Conv3d(32, 3, 1)
        self.up = nn.ConvTranspose2d(3, 32, 2)
        nn.init.uniform_(self.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        y = self.groups(F.relu(self.norm(self.line(self.stem(x)))))
        y = self.depthwise(self.plane(y.unflatten(1, (8, 8))))
        return self.up(self.space(y[:, :, None])[:, :, 0])


class Experts(nn.Module):
    """Matrices that the input picks."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.Parameter(torch.randn(5, 24, 64) / 8)

    def forward(self, x: Tensor, picks: Tensor) -> Tensor:
        return torch.bmm(self.experts[picks], x[..., None])[..., 0]


NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], set[str], Any]] = {
    "tagger": (
        Tagger, lambda: torch.randint(0, 11, (2, 7)), {"words", "up", "down", "odd"}, {"tokens": {0: "B", 1: "T"}}
    ),
    "convolutions": (
        Convolutions, lambda: torch.randn(2, 3, 40), {"line", "groups", "plane", "space"}, {"x": {0: "B"}}
    ),
    "experts": (
        Experts, lambda: (torch.randn(3, 64), torch.tensor([4, 0, -2])), {"experts"}, {"x": {0: "N"}, "picks": {0: "N"}}
    ),
}  # fmt: skip
"""Net, inputs, what is read in blocks by the newest release, dynamic axes."""
READS = {
    "0.21.10": set[str](),
    "0.21.11": {"tagger", "experts"},
    **{version: set(NETS) for version in ("0.21.12", "0.21.19", "0.22.1", "0.22.4", "0.23.0", NEWEST)},
}


@pytest.mark.parametrize("name", list(NETS))
@pytest.mark.parametrize("version", list(READS))
def test_weights_in_blocks(name: str, version: str, tmp_path: Path) -> None:
    """What a release computes is what the dequantised model computes; what it cannot read stays, and is told."""
    make, inputs, expected, axes = NETS[name]
    torch.manual_seed(1)
    model = make().eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    target = TractNNEF(version, weights="q4_0", dynamic_axes=axes)
    result = ModelExport(model, inputs()).to(target, tmp_path / "m")
    types = {path.stem: int.from_bytes(path.read_bytes()[48:50], "little") for path in (tmp_path / "m").glob("*.dat")}
    quantised_names = {name.partition(".")[0] for name, item_type in types.items() if item_type == 0x3040}
    assert quantised_names == (expected if name in READS[version] else set())
    assert {label.partition(".")[0] for label, _ in result.stored} == quantised_names
    outcome = result.assert_parity("approximate")
    assert len(outcome.sizes) >= (7 if name == "tagger" else 3)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    if "up" in quantised_names:
        assert (tmp_path / "m" / "up.weight.dat").stat().st_size == 128 + 64 * 96 // 32 * 18
    if quantised_names:
        plain = check_parity(target.engine(), CheckRequest(result.archive, result.export.samples, result.output_names))
        assert not plain.passed, "4 bits are not what the model has"
    else:
        assert f"from {'0.21.12' if name == 'convolutions' else '0.21.11'} on" in result.notes[0]


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_any_number_of_rows_has_a_kernel(version: str, tmp_path: Path) -> None:
    for rows, width in itertools.product((1, 2, 3, 5, 8, 12, 16, 17, 33), (32, 96)):
        export = ModelExport(nn.Linear(width, 96).eval(), torch.randn(rows, width))
        export.to(TractNNEF(version, weights="q4_0"), tmp_path / "m.nnef.tar").assert_parity("approximate")


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 64)
        nn.init.normal_(self.words.weight, std=0.1)  # long sums of float16 that cancel would test rounding only
        self.out = nn.Linear(64, 11, bias=False)
        self.out.weight = self.words.weight
        self.mid = nn.Linear(64, 64)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(torch.tanh(self.mid(self.words(tokens))))


@pytest.mark.parametrize("format", ["q4_0", "int8"])
@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_a_tied_weight_is_one_file(version: str, format: str, tmp_path: Path) -> None:
    model = Tied().half() if format == "q4_0" else Tied()
    target = TractNNEF(version, weights=format)
    result = ModelExport(model.eval(), torch.randint(0, 11, (2, 7))).to(target, tmp_path / "m")
    assert {label for label, _ in result.stored} == {"words.weight", "mid.weight"}
    files = {path.name for path in (tmp_path / "m").glob("*.weight.dat")}
    assert files == {"words.weight.dat", "mid.weight.dat"}
    result.assert_parity("approximate")


def test_a_tied_weight_that_one_reader_cannot_take_stays(tmp_path: Path) -> None:
    net = net_of(lambda self, x: F.linear(x, self.weight) @ self.weight, weight=nn.Parameter(torch.randn(4, 64)))
    result = exported(net, torch.randn(2, 64), TractNNEF(NEWEST, weights="q4_0"), tmp_path)
    assert not result.stored
    assert "`weight` stays float32: no release of tract reads q4_0 in plain products" in result.notes[0]


def _int8_nets() -> dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]]:
    nets = {name: (make, inputs) for name, (make, inputs, _, _) in NETS.items()}
    return {
        **nets,
        "lstm": (lambda: nn.LSTM(32, 24, bidirectional=True), lambda: torch.randn(7, 2, 32)),
        "gru": (lambda: nn.GRU(32, 24), lambda: torch.randn(7, 2, 32)),
        "attention": (
            lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), lambda: torch.randn(2, 5, 32)
        ),
    }  # fmt: skip


@every_line
@pytest.mark.parametrize("name", list(_int8_nets()))
def test_weights_of_bytes(name: str, version: str, tmp_path: Path) -> None:
    """Every release reads them for every reader."""
    make, inputs = _int8_nets()[name]
    torch.manual_seed(1)
    result = ModelExport(make().eval(), inputs()).to(TractNNEF(version, weights="int8"), tmp_path / "m")
    assert not [note for note in result.notes if "in a State" not in note]
    result.assert_parity("approximate")
    matrices = {label for label, weight in result.export.source.weights.items() if weight.dim() > 1}
    assert {label for label, _ in result.stored} == matrices
    for label in matrices:
        assert (tmp_path / "m" / f"{label}.dat").stat().st_size == 128 + result.export.source.weights[label].numel()
    outcome = check_parity(
        result.target.engine(), CheckRequest(result.archive, result.export.samples, result.output_names)
    )
    assert outcome.level not in ("exact", "close", "approximate")


@pytest.mark.parametrize(("format", "scales"), [("int8", percentile(0.9)), ("q4_0", least_error)])
def test_own_scales(format: Any, scales: Any, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(9, 64), nn.Linear(64, 32)).eval()
    weights = {"0": StoredAs(format, scales=scales), "*": format}
    export = ModelExport(model, torch.randint(0, 9, (2, 5)))
    result = export.to(TractNNEF(NEWEST, weights=weights), tmp_path / "m.nnef.tar")
    result.assert_parity("approximate")
    assert {label: stored.format for label, stored in result.stored} == {"0.weight": format, "1.weight": format}
    plain = export.lower(TractNNEF(NEWEST, weights=format)).stored
    custom, usual = dict(result.stored)["0.weight"], plain["0.weight"]
    if format == "int8":
        assert (custom.scales < usual.scales).all()
    else:
        errors = [((variant.values - model[0].weight) ** 2).sum() for variant in (custom, usual)]
        assert errors[0] < errors[1]


@pytest.mark.parametrize("version", ["0.21.19", "0.22.4", "0.23.0", "0.23.5", NEWEST])
def test_bytes_become_numbers_before_the_first_run(version: str, tmp_path: Path) -> None:
    """The optimised graph neither casts nor scales, also a weight of more than 4 MiB; in 0.23 with a norm behind it."""
    norms = [nn.BatchNorm2d(400)] if version.startswith("0.23") else []
    export = ModelExport(nn.Sequential(nn.Conv2d(400, 400, 3), *norms).eval(), torch.randn(1, 400, 4, 4))
    result = export.to(TractNNEF(version, weights="int8"), tmp_path / "m")
    engine = engine_for(result.target.resolved)  # type: ignore[attr-defined]
    profile = profile_archive(engine, result.archive, result.samples[0].inputs, seconds=0.05)
    nodes = [node for line in profile.lines for node in line.nodes]
    folded = ("Cast", "Concat", "TypedConcat", "Slice", "Rsqrt", "Mul", "OptMulBy", "OptMulUnicast")
    assert not [node for node in nodes if node.startswith(folded)], nodes


def test_a_choice_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="'q8' is not one of float16, int8, q4_0, float32"):
        TractNNEF(NEWEST, weights={"*": "q8"})
    with pytest.raises(InputError, match="float16 has no scales"):
        StoredAs("float16", scales=least_error)
    with pytest.raises(InputError, match="weights=3 is not a format"):
        TractNNEF(NEWEST, weights=3)  # type: ignore[arg-type]
