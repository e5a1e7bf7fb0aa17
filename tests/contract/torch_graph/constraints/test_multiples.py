"""Sizes of which a range has one remainder alone, or that a user declares as multiples, are written so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import sympy
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import LowerError
from t2n_core.nnef.sizes.dims import FloorDiv, Modulo, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.constraints.declared_axes import DynamicAxes
from t2n_core.torch_graph.graph.multiples import multiples
from tests.nets import OfFunction
from tests.releases import NEWEST

T = symbol("T")
VERSIONS = ("0.19.15", "0.21.8", NEWEST)


def remainder(divisor: int, rest: int) -> sympy.Eq:
    return sympy.Eq(Modulo(T, divisor), rest, evaluate=False)


def test_a_multiple_is_written_as_its_quotient_times_the_divisor() -> None:
    sizes, forms = multiples(SizeRange.of(["T"]).narrowed(remainder(4, 0)), [FloorDiv(T, 4)], {"T": 8})
    assert str(sizes) == "T >= 4, T % 4 == 0"
    from_4 = symbol("T", 4)
    assert forms == {"T": 4 * FloorDiv(from_4, 4)}


def test_a_remainder_is_what_is_missing_to_the_next_multiple() -> None:
    sizes, forms = multiples(SizeRange.of(["T"]).narrowed(remainder(4, 3)), [FloorDiv(T, 4)], {"T": 11})
    assert str(sizes) == "T >= 3, T % 4 == 3"
    assert forms == {"T": 4 * FloorDiv(symbol("T", 3) + 1, 4) - 1}


def test_two_remainders_are_one_of_the_common_multiple() -> None:
    size_range = SizeRange.of(["T"]).narrowed(remainder(4, 2), remainder(6, 0))
    sizes, forms = multiples(size_range, [FloorDiv(T, 2)], {"T": 18})
    assert str(sizes) == "T >= 6, T % 4 == 2, T % 6 == 0"
    assert forms == {"T": 12 * FloorDiv(symbol("T", 6) + 6, 12) - 6}


def test_a_size_that_nothing_divides_stays_as_it_is() -> None:
    size_range = SizeRange.of(["T"]).narrowed(remainder(2, 0))
    assert multiples(size_range, [T + 1], {"T": 8}) == (size_range, {})
    free = SizeRange.of(["T"])
    assert multiples(free, [FloorDiv(T, 2)], {"T": 8}) == (free, {})


def padded_to_four(x: Tensor) -> Tensor:
    rest = x.shape[1] % 4
    return (F.pad(x, (0, 0, 0, 4 - rest)) if rest else x).unflatten(1, (-1, 4)).sum(2)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "unflatten": lambda x: x.unflatten(1, (-1, 4)) * 2,
    "view": lambda x: x.view(2, -1, 12),
    "halves": lambda x: F.glu(x, 1),
    "gated halves added": lambda x: x[:, : x.shape[1] // 2] + x[:, x.shape[1] // 2 :],
    "groups of channels": lambda x: F.group_norm(x, 4),
    "not padded": padded_to_four,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_takes_multiples_alone_is_right_at_them_and_refused_elsewhere(name, version, tmp_path):
    torch.manual_seed(4)
    export = ModelExport(OfFunction(FUNCTIONS[name]), torch.randn(2, 8, 3), dynamic_axes={"x": {1: "T"}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = export.to(TractNNEF(version), tmp_path / "a.tar")
    outcome = result.assert_parity("approximate")
    checked = {sample.sizes["T"] for sample in result.samples}
    assert len(checked) > 2
    assert outcome.refused_sizes


class Strided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 5, 5, stride=4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pieces = y[:, :, 1:].reshape(y.shape[0], 3, -1, 4).mean(-1)
        return x.relu(), self.conv(y) + pieces.mean(1, keepdim=True) * y.shape[2]


@pytest.mark.parametrize("version", ["0.19.15", "0.21.5", "0.21.19", NEWEST])
@pytest.mark.parametrize("axes", [{"x": {1: Dim("T"), 0: "B"}}, {}], ids=["beside", "alone"])
def test_multiples_in_the_engine(axes: DynamicAxes, version: str, tmp_path: Path) -> None:
    inputs = {"x": torch.randn(2, 5, 4), "y": torch.randn(3, 3, 21)}
    export = ModelExport(Strided().eval(), inputs, dynamic_axes={**axes, "y": {2: 4 * Dim("T") + 1}})
    if version < "0.21" and not axes:
        with pytest.raises(LowerError, match=r"does not find T from an axis of 4\*T \+ 1"):
            export.lower(TractNNEF(version))
        return
    result = export.to(TractNNEF(version), tmp_path / "m.nnef.tgz")
    outcome = result.assert_parity("approximate")
    assert {sizes["T"] for sizes in outcome.sizes} >= {1, 5}
