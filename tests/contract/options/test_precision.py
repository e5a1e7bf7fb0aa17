"""Computed float16 by plan, on real engines: the plan that is given, and the one that is searched."""

from __future__ import annotations

import platform
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.errors import InputError, OptionWarning
from t2n_core.nnef.graph import FLOAT16, FLOAT32
from t2n_core.nnef.options.precision import PrecisionPlan
from t2n_core.parity.judging.float16_level import LARGEST, peak
from t2n_core.parity.outcome import Status
from t2n_core.torch_graph.precision.kernels import lacks_kernels
from tests.contract.options.exports import every_line
from tests.nets import net_of
from tests.releases import NEWEST


class Block(nn.Module):
    """Convolutions, norms, attention and a recurrent net."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(8, 16, 3), nn.BatchNorm1d(16), nn.GELU(), nn.Conv1d(16, 32, 3))
        self.attention = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.rnn = nn.GRU(32, 16, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        outputs, last = self.rnn(self.attention(self.conv(x).mT))
        return outputs, last


class Normed(nn.Module):
    """A norm whose bound is zero in float16, of rows that are zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(F.normalize(torch.relu(self.first(x) - 1e3), eps=1e-12))
        return out


class Sharp(nn.Module):
    """Attention with logits of the size of hundreds."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        logits = 40 * self.q(x) @ self.k(x).mT
        return torch.softmax(logits, -1) @ self.v(x)


class Deep(nn.Module):
    """Blocks that add to what they get, whose roundings all reach the two outputs."""

    def __init__(self, width: int = 16, depth: int = 6) -> None:
        super().__init__()

        def block() -> nn.Module:
            layers = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
            return nn.Sequential(nn.LayerNorm(width), *layers)

        self.blocks = nn.ModuleList(block() for _ in range(depth))
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + 20 * block(x)
        out: Tensor = self.head(x)
        return out


def exported(model: nn.Module, x: Tensor, version: str, precision: object, path: Path) -> ExportResult:
    target = TractNNEF(version, precision=precision, check_io=False)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptionWarning)
        return ModelExport(model.eval(), x).to(target, path / "m.nnef.tar")


@every_line
def test_precision(version: str, tmp_path: Path) -> None:
    """All in float16 but the recurrent net: within the level of float16, and not what float32 computes."""
    (tmp_path / "plan.toml").write_text('default = "float16"\n[[float32]]\nmodules = ["rnn"]\n', encoding="utf-8")
    result = exported(Block(), torch.randn(2, 8, 9), version, tmp_path / "plan.toml", tmp_path)
    dtypes = {op.arguments["label"]: value.dtype for op, value in result.graph.variables()}
    assert dtypes["attention.linear1.weight"] == FLOAT16
    assert dtypes["rnn.weight_ih_l0"] == FLOAT32
    outcome = result.assert_parity()
    assert outcome.metrics[0].value > 1e-5
    assert not result.check_parity("close").passed


def test_precision_at_other_sizes(tmp_path: Path) -> None:
    target = TractNNEF("0.21.19", precision=PrecisionPlan(), dynamic_axes={"x": {0: "B", 2: "T"}}, check_io=False)
    with pytest.warns(OptionWarning):
        result = ModelExport(Block().eval(), torch.randn(2, 8, 9)).to(target, tmp_path / "m")
    assert len(result.assert_parity().sizes) > 5


def test_float16_without_a_plan_fail_where_a_search_passes(tmp_path: Path) -> None:
    model, x = Normed(), torch.randn(3, 16)
    all_float16 = exported(model, x, NEWEST, PrecisionPlan(), tmp_path).check_parity()
    assert all_float16.status is Status.MISMATCH
    result = exported(model, x, NEWEST, "auto", tmp_path)
    assert result.assert_parity().status is not Status.MISMATCH
    plan = PrecisionPlan.read(tmp_path / "m.nnef.tar.precision.toml")
    assert {entry.operators for entry in plan.entries} == {("clamp_min",), ("div",)}
    assert "4 inputs" in result.notes[-1] or "5 inputs" in result.notes[-1]


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_a_search_gives_back_what_it_can(version: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, x = Sharp(), torch.randn(2, 9, 32)
    assert not exported(model, x, version, PrecisionPlan(), tmp_path).check_parity().passed
    result = exported(model, x, version, "auto", tmp_path)
    plan = PrecisionPlan.read(tmp_path / "m.nnef.tar.precision.toml")
    assert plan.of("v", "linear") == "float16"
    assert plan.of("q", "linear") == "float32"
    samples = result.reference.in_float64(result.reference.others(6, 30))
    reply = result.target.engine().run(result.archive, [sample.inputs for sample in samples])
    assert max(peak(sample.reference, got) for sample, got in zip(samples, reply.outputs, strict=True)) <= LARGEST
    again = exported(model, x, version, tmp_path / "m.nnef.tar.precision.toml", tmp_path)
    again.assert_parity()


def rotary(_: nn.Module, x: Tensor) -> Tensor:
    """Rotate pairs of channels by angles that grow with the position."""
    angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float32), 1e-4 ** (torch.arange(4) / 4))
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + torch.cat([-x[..., 4:], x[..., :4]], -1) * angles.sin()


LONG = {
    "rotary": rotary,
    "a phase": lambda _, x: torch.sin(torch.cumsum(x.abs() * 0.5 + 1, 1)) * x,
    "parity": lambda _, x: x * (p := torch.arange(x.shape[1]).float() * 0.5)[:, None].sub(p.floor()[:, None]),
}


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("name", LONG)
def test_a_search_holds_at_sizes_that_it_has_not_tried(name: str, version: str, tmp_path: Path) -> None:
    torch.manual_seed(5)
    model, target = net_of(LONG[name]).eval(), TractNNEF(version, precision="auto", check_io=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptionWarning)
        export = ModelExport(model, {"x": torch.randn(1, 12, 8)}, dynamic_axes={"x": {1: "T"}})
        result = export.to(target, tmp_path / "m.nnef.tar")
    for steps in (700, 6_000):
        x = torch.randn(1, steps, 8)
        reply = target.engine().run(result.archive, [[x.numpy()]])
        assert peak(model(x).numpy(), reply.outputs[0][0]) <= LARGEST


def test_a_plan_of_positions_in_float16_has_a_note(tmp_path: Path) -> None:
    export = ModelExport(net_of(rotary).eval(), {"x": torch.randn(1, 12, 8)}, dynamic_axes={"x": {1: "T"}})
    with pytest.warns(OptionWarning, match="values that grow with T in float16, which counts to 2048"):
        export.to(TractNNEF(NEWEST, precision=PrecisionPlan(), check_io=False), tmp_path / "m.nnef.tar")


def test_a_search_leaves_float32_to_few_where_all_in_float16_are_a_little_off(tmp_path: Path) -> None:
    torch.manual_seed(2)
    model, x = Deep(), torch.randn(1, 16)
    result = exported(model, x, NEWEST, "auto", tmp_path)
    result.assert_parity()
    counts = re.search(r"(\d+) of 27 operators in float16.*\((\S+) with all\).* after (\d+) runs", result.notes[-1])
    assert counts is not None
    assert 20 <= int(counts[1]) < 27
    assert float(counts[2]) > LARGEST / 2
    assert int(counts[3]) < 12
    plan = PrecisionPlan.read(tmp_path / "m.nnef.tar.precision.toml")
    assert plan.accumulation == ("float32" if lacks_kernels() else "float16")


def test_a_model_that_is_too_sharp_for_float32_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no precision plan: in float32 the largest error"):
        exported(net_of(lambda _, x: torch.sin(1e7 * x)), torch.randn(4, 8), NEWEST, "auto", tmp_path)
    assert not list(tmp_path.iterdir())


def test_slow_float16_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = nn.Sequential(nn.Conv1d(4, 8, 3), nn.Linear(6, 5)), torch.randn(1, 4, 8)
    for machine, has_note in (("x86_64", True), ("aarch64", False)):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        notes = exported(model, x, NEWEST, PrecisionPlan(), tmp_path).notes
        assert (
            any("1 convolutions 10 to 400 times and 1 other products about twice as slow" in note for note in notes)
            == has_note
        )


def test_casts_around_products_in_float32_are_told(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Tanh()), torch.randn(2, 8)
    notes = exported(model, x, NEWEST, PrecisionPlan(accumulation="float32"), tmp_path).notes
    assert any("products are computed in float32" in note for note in notes) == lacks_kernels()


def test_other_words_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(3))
    with pytest.raises(InputError, match="is not a precision plan"):
        TractNNEF(NEWEST, precision=tmp_path / "x.npz")
