"""Every quirk of a release, in both directions: a net that shows it is right with the repair and not without it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from packaging.version import Version
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef import legality
from t2n_core.nnef.tract import quirks
from t2n_core.nnef.tract.quirks import table
from t2n_core.nnef.tract.quirks.quirk import Quirk
from t2n_core.nnef.tract.quirks.table import QUIRKS, quirks_of
from t2n_core.parity.outcome import Outcome
from tests.releases import NEWEST, SCANNED

NUMBERS = torch.Generator().manual_seed(5)


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=NUMBERS)


class Net(nn.Module):
    """A function of the inputs, with some weights at hand."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.function = function
        self.rnn = nn.RNN(5, 7, 2)
        self.strided = nn.Conv1d(3, 4, 3, stride=2)
        self.pointwise = nn.Conv1d(3, 4, 1, stride=2)
        self.wide = nn.Conv2d(2, 3, (1, 5), padding=(0, 2))
        self.blocks = nn.Conv1d(32, 33, 3)
        self.points = nn.Conv2d(5, 5, 1)
        for name, shape in {
            "batches": (2, 5, 4, 6),
            "column": (1, 1, 33, 1),
            "dense": (7, 28),
            "few": (4, 3),
            "taps": (6, 4),
        }.items():
            self.register_buffer(name, randn(*shape).abs() + 0.5)
        self.register_buffer("nothing", torch.zeros(1))

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


class Shown(NamedTuple):
    """A net that shows a quirk, on releases at both ends of its range."""

    releases: tuple[str, ...]
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    axes: Mapping[int, Any] | None = None
    """Axis -> symbol, of the first input."""
    weights: Mapping[str, str] | None = None


def _halves(m: Net, x: Tensor) -> Tensor:
    """Multiply over an axis whose size is `(T + 1) // 2` in one operand and `(2 * T + 3) // 4` in the other."""
    return x.chunk(2, 2)[0] @ torch.cat([x, x], 2).tensor_split(4, 2)[0].mT


def _flat_and_last(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the steps of all sequences in one axis, and the last state."""
    y, last = m.rnn(x)
    return y.flatten(0, 1), last


def _full(m: Net, x: Tensor) -> Tensor:
    return x.abs().pow(torch.full((3, 4), 2.0))


SHOWN: dict[str, Shown] = {
    "swapped_sub": Shown(("0.21.8", "0.21.10"), lambda m, x: x.mean() - x, (randn(2, 12, 40),)),
    "mixed_second_operand": Shown(("0.21.6",), lambda m, x: x * m.column, (randn(2, 7, 33, 65),)),
    "uniform_tensor": Shown(
        ("0.23.0", NEWEST),
        lambda m, x: torch.zeros(x.shape[0], dtype=torch.bool)[:, None] & (x[:1] > 0),
        (randn(6, 4),),
        {0: "T"},
    ),
    "full_second_operand": Shown(("0.19.15", "0.21.19", NEWEST), _full, (randn(3, 1),)),
    "scalar_beside_reshape": Shown(
        ("0.21.8", "0.21.19"),
        lambda m, x: ((x @ m.taps).unflatten(1, (2, 2)) * 0.3).flatten(1) @ m.few,
        (randn(5, 6),),
        {0: "T"},
    ),
    "misread_unit_axis": Shown(
        ("0.21.8", "0.22.4"), lambda m, x: x[None] * x.sin()[None], (randn(2, 4, 36),), {0: "B"}
    ),
    "empty_sum": Shown(
        ("0.19.15", "0.21.5", "0.23.5", NEWEST),
        lambda m, x: x.sum(-1),
        (randn(4, 6),),
        {1: Dim("T", min=0, max=99)},
    ),
    "batched_constant": Shown(("0.19.15",), lambda m, x: x @ m.batches, (randn(1, 1, 3, 4),)),
    "axis_of_constant": Shown(
        ("0.19.2", "0.19.15"), lambda m, x: (x[..., 0] @ m.batches[0])[..., None], (randn(5, 7, 4, 2),), {1: "T"}
    ),
    "inner_size": Shown(("0.21.5", "0.21.7"), _halves, (randn(2, 3, 9),), {2: "T"}),
    "tiled_operand": Shown(
        ("0.23.0", NEWEST), lambda m, x: x[:1].expand(x.shape[0], -1) @ m.few, (randn(6, 4),), {0: "T"}
    ),
    "folded_batch": Shown(("0.23.0", NEWEST), lambda m, x, y: x.flatten(0, 1) @ y, (randn(2, 3, 4, 5), randn(1, 5, 7))),
    "zero_operand": Shown(
        ("0.21.13", "0.22.4", NEWEST), lambda m, x: (x * m.nothing) @ m.few, (randn(6, 4),), {0: "T"}
    ),
    "scaled_blocks": Shown(
        ("0.21.12", "0.22.4", NEWEST),
        lambda m, x: (m.blocks(x) + m.column[0]) * m.column[0],
        (randn(2, 32, 7),),
        weights={"blocks.weight": "q4_0"},
    ),
    "subtracted_convolution": Shown(
        ("0.21.0", "0.21.19", "0.22.4", NEWEST), lambda m, x: m.column[0] * x.mean() - m.blocks(x), (randn(2, 32, 7),)
    ),
    "overrun_row": Shown(("0.19.15", "0.22.4"), lambda m, x: m.wide(x), (randn(1, 2, 40, 1),)),
    "rounded_up_windows": Shown(("0.20.19", "0.20.22"), lambda m, x: m.strided(x), (randn(2, 3, 18),), {2: "T"}),
    "scalar_product": Shown(
        ("0.21.13", "0.22.4", NEWEST), lambda m, x: x[0].reshape(-1) @ x[1].reshape(-1), (randn(2, 6, 4),), {1: "T"}
    ),
    "moved_stride": Shown(
        ("0.19.2", "0.20.7", "0.22.4", NEWEST), lambda m, x: m.pointwise(x.softmax(2)), (randn(2, 3, 6),), {2: "T"}
    ),
    "inserted_axis": Shown(
        ("0.21.11", "0.22.4", NEWEST),
        lambda m, x: F.conv1d(x, m.taps[:, :3].unsqueeze(1), m.taps[:, 3], groups=6),
        (randn(2, 6, 17),),
    ),
    "reshape_of_scan": Shown(("0.19.15", "0.20.22", "0.22.4", "0.23.8"), _flat_and_last, (randn(6, 4, 5),)),
    "reshape_before_scan": Shown(("0.19.2", "0.19.15"), lambda m, x: m.rnn(x)[0], (randn(6, 4, 5),), {0: "T"}),
    "transpose_of_scan": Shown(("0.19.2", "0.19.15"), lambda m, x: m.rnn(x)[1][0].T, (randn(6, 4, 5),), {1: "B"}),
    "reshape_of_points": Shown(
        ("0.20.19", "0.20.22", "0.21.5"),
        lambda m, x: (x + m.points(x)).reshape(x.shape[0], 1, -1),
        (randn(2, 5, 4, 1),),
    ),
    "reshape_of_sum": Shown(
        ("0.20.3", "0.20.18"), lambda m, x, y: (x @ m.dense + y).view(4, 1, 7), (randn(1, 1, 7), randn(1, 1, 28))
    ),
    "squeeze_of_sum": Shown(
        ("0.20.19", "0.20.22", "0.21.5"),
        lambda m, x, y: (x @ x.mT + y).squeeze(0),
        (randn(1, 2, 6, 9), randn(1, 2, 6, 6)),
    ),
    "product_of_concat": Shown(
        ("0.20.5", "0.20.22", "0.21.1"),
        lambda m, x: (x.cos().repeat(1, 1, 2, 1).mT @ torch.cat([x, x.sin()], 2)).squeeze(0),
        (randn(1, 2, 5, 8),),
        {2: "T"},
    ),
}
CELLS = [(name, release) for name, shown in SHOWN.items() for release in shown.releases]
CELLS += [(quirk.name, release) for release in SCANNED for quirk in QUIRKS if quirk.concerns(Version(release))]


def outcome(name: str, release: str, folder: Path) -> Outcome:
    """Return the check of the net that shows a quirk."""
    shown = SHOWN[name]
    names = [f"x{i}" for i in range(len(shown.inputs))]
    axes = None if shown.axes is None else {"x0": dict(shown.axes)}
    export = ModelExport(Net(shown.function).eval(), shown.inputs, input_names=names, dynamic_axes=axes)
    result = export.to(TractNNEF(release, check_io=False, weights=SHOWN[name].weights), folder / "model.nnef.tar")
    return result.check_parity("approximate")


def passes(name: str, release: str, folder: Path) -> bool:
    """Return whether the engine computes the net that shows a quirk right."""
    return outcome(name, release, folder).passed


@pytest.mark.parametrize(("name", "release"), CELLS)
def test_the_repair_is_right_and_needed(
    name: str, release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert passes(name, release, tmp_path), "wrong with the repair"

    def others(version: Version) -> Mapping[str, tuple[Quirk, ...]]:
        all_quirks = quirks_of(version)
        return {operator: tuple(q for q in those if q.name != name) for operator, those in all_quirks.items()}

    for module in (table, legality):
        monkeypatch.setattr(module, "quirks_of", others)
    assert not passes(name, release, tmp_path), "right without the repair"


@pytest.mark.parametrize(
    ("name", "release"),
    [(quirk.name, release) for release in SCANNED for quirk in QUIRKS if not quirk.concerns(Version(release))],
)
def test_a_release_without_the_quirk_is_right(name: str, release: str, tmp_path: Path) -> None:
    assert passes(name, release, tmp_path), "wrong, where no erratum is known"


def test_every_quirk_stands_in_the_table() -> None:
    modules = [
        importlib.import_module(f"{quirks.__name__}.{module_info.name}")
        for module_info in pkgutil.iter_modules(quirks.__path__)
    ]
    written = {value.name for module in modules for value in vars(module).values() if isinstance(value, Quirk)}
    assert written == {quirk.name for quirk in QUIRKS}


def test_every_quirk_is_shown() -> None:
    assert {quirk.name for quirk in QUIRKS} == SHOWN.keys()


@pytest.mark.parametrize(("name", "release"), CELLS)
def test_a_statement_that_was_not_repaired_is_refused(
    name: str, release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (quirk,) = (candidate for candidate in QUIRKS if candidate.name == name)
    monkeypatch.setattr("t2n_core.nnef.tract.emitter.apply_quirks", lambda g, operation: operation)
    with pytest.raises(Exception, match="must not be written for") as refused:
        passes(name, release, tmp_path)
    assert quirk.reason in str(refused.value)


def _half_of_a_size(m: Net, x: Tensor) -> Tensor:
    return x * (torch.tensor(x.shape[0]) * 0.5 - torch.tensor(x.shape[0] // 2))


@pytest.mark.parametrize("release", ["0.23.0", NEWEST])
def test_a_formula_that_is_not_hidden_is_followed(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The releases take half of 5 for 2 where they see that 5 is a size."""
    monkeypatch.setitem(SHOWN, "half", Shown((release,), _half_of_a_size, (randn(5, 3),), {0: "B"}))
    assert passes("half", release, tmp_path)
    monkeypatch.setattr("t2n_core.nnef.tract.sizes.values._hide_formula", lambda g, value, never_negative: value)
    assert not passes("half", release, tmp_path)
