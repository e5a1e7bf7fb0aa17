"""What PyTorch leaves open is no mismatch: the order of equal elements, the sign of a phase of pi."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.check.mismatch.unspecified import UNSPECIFIED
from t2n_core.parity.outcome import Status
from tests.nets import OfFunction
from tests.releases import NEWEST

Net = Callable[[Tensor], Any]


def best(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest elements, most of them zeros, where they are, and what is there in a table."""
    values, places = torch.relu(x - 1.5).topk(8)
    return values, places, torch.cos(x)[:, places[0]]


ORDERS: dict[str, Net] = {
    "topk": best,
    "sort": lambda x: torch.relu(x - 1.5).sort(descending=True),
    "kthvalue": lambda x: torch.relu(x - 1.5).kthvalue(4),
    "median": lambda x: torch.relu(x - 0.5).median(1),
}


def phase(x: Tensor) -> tuple[Tensor, Tensor]:
    spectrum = torch.stft(x, 16, 4, window=torch.hann_window(16), center=True, return_complex=True)[:, :8]
    return torch.angle(spectrum), spectrum.abs()


def exported(net: Net, example: Tensor, folder: Path, **options: Any) -> ExportResult:
    export = ModelExport(OfFunction(net).eval(), example, input_names=["x"], **options)
    return export.to(TractNNEF(NEWEST, check_io=False), folder / "net")


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_of_equal_elements(name: str, tmp_path: Path) -> None:
    exported(ORDERS[name], drawn(2, 40), tmp_path).check_parity().raise_for_failure()


def test_what_the_outcome_says(tmp_path: Path) -> None:
    outcome = exported(best, drawn(2, 40), tmp_path).check_parity()
    assert outcome.status is Status.WEAK
    assert outcome.error is not None
    assert outcome.error.message.startswith("the order of equal elements is not that of PyTorch, which leaves it open")
    assert "exporter" not in outcome.describe()


@pytest.mark.parametrize(("pattern", "text"), [(r"= relu\((\w+)\)", r"= relu(\1 * 1.01)"), (r"= cos\(", "= sin(")])
def test_other_values_are_a_mismatch(pattern: str, text: str, tmp_path: Path) -> None:
    result = exported(best, drawn(2, 40), tmp_path)
    graph = result.archive / "graph.nnef"
    changed = re.sub(pattern, text, graph.read_text(), count=1)
    assert changed != graph.read_text()
    graph.write_text(changed)
    outcome = result.check_parity()
    assert outcome.status is Status.MISMATCH
    assert UNSPECIFIED not in outcome.facts


def test_phases_at_the_branch_cut(tmp_path: Path) -> None:
    """A frame that reflected padding makes symmetric has an imaginary part of rounding noise."""
    outcome = exported(phase, drawn(2, 64), tmp_path, dynamic_axes={"x": {1: "T"}}).check_parity()
    assert outcome.status is Status.WEAK
    assert outcome.facts[UNSPECIFIED] == "the sign of a phase of pi"


def test_other_phases_are_a_mismatch(tmp_path: Path) -> None:
    result = exported(lambda x: torch.atan2(x, x.roll(1, 1)), drawn(2, 64), tmp_path)
    assert result.check_parity().status is Status.PASS
    graph = result.archive / "graph.nnef"
    graph.write_text(re.sub(r"3\.14159\d*", "3.2", graph.read_text()))
    assert result.check_parity().status is Status.MISMATCH


def test_a_bin_that_is_always_real_is_judged(tmp_path: Path) -> None:
    """Its phase is pi, and not -pi, where it is negative."""
    result = exported(phase, drawn(2, 64), tmp_path, dynamic_axes={"x": {1: "T"}})
    graph = result.archive / "graph.nnef"
    lines = graph.read_text().splitlines()
    at = next(index for index, line in enumerate(lines) if line.strip().startswith("output_0 ="))
    lines[at : at + 1] = [
        lines[at].replace("output_0 =", "before =", 1),
        "  first = slice(before, axes = [1], begin = [0], end = [1]);",
        "  others = slice(before, axes = [1], begin = [1], end = [8]);",
        "  output_0 = concat([-1.0 * first, others], axis = 1);",
    ]
    graph.write_text("\n".join(lines))
    assert result.check_parity().status is Status.MISMATCH
