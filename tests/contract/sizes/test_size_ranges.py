"""The range of an archive in real engines: right inside, refused with an error outside, at no cost in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.engine import TractEngine
from tests.nets import net_of
from tests.releases import NEWEST

VERSIONS = f"0.19.15 0.20.22 0.21.5 0.21.6 0.21.7 0.21.8 0.21.19 0.22.4 0.23.0 {NEWEST}".split()
B, T, S = ("B", "T", "S")


@dataclass(frozen=True)
class Case:
    """A range, the sizes of the example, and sizes to run at."""

    asserted: Sequence[str]
    example: Mapping[str, int]
    inside: Sequence[tuple[int, int, int]]
    outside: Sequence[tuple[int, int, int]]
    """Of B, T and S."""


PLAIN = {"B": 2, "T": 7, "S": 3}
CASES = {
    "from 1": Case([], PLAIN, [(1, 1, 1), (2, 40, 17)], [(0, 7, 3), (2, 0, 3), (2, 7, 0), (0, 0, 0)]),
    "T <= 16": Case(["T <= 16"], PLAIN, [(2, 16, 3), (5, 1, 40)], [(2, 17, 3), (2, 40, 3), (2, 0, 3), (2, 3000, 1)]),
    "T >= 5": Case(["T >= 5"], PLAIN, [(2, 5, 3), (9, 90, 1)], [(2, 4, 3), (2, 1, 3), (2, 0, 3)]),
    "T in 5..16": Case(["T >= 5", "T <= 16"], PLAIN, [(2, 5, 3), (2, 16, 3)], [(2, 4, 3), (2, 17, 3)]),
    "B and T": Case(["B <= 8", "T < 17"], PLAIN, [(8, 16, 3), (1, 1, 1)], [(9, 16, 3), (8, 17, 3), (9, 17, 3)]),
    "T <= S": Case(["T <= S"], {"B": 2, "T": 3, "S": 7}, [(2, 7, 7), (1, 1, 40)], [(2, 8, 7), (2, 40, 1), (2, 0, 7)]),
    "T < S": Case(["T < S"], {"B": 2, "T": 3, "S": 7}, [(2, 6, 7), (1, 1, 40)], [(2, 7, 7), (2, 40, 1), (2, 0, 7)]),
    "2 T <= S + 1": Case(["2 * T <= S + 1"], {"B": 2, "T": 3, "S": 7}, [(2, 4, 7), (1, 1, 1)], [(2, 5, 7), (2, 9, 8)]),
    "even": Case(["T == 2 * (T / 2)"], {"B": 2, "T": 8, "S": 3}, [(2, 2, 3), (3, 40, 1)], [(2, 1, 3), (2, 41, 3)]),
    "fours": Case(["T == 4 * (T / 4)"], {"B": 2, "T": 8, "S": 3}, [(2, 4, 3), (3, 40, 1)], [(2, 3, 3), (2, 41, 3)]),
    "T + S <= 20": Case(["T + S <= 20"], PLAIN, [(2, 17, 3), (2, 1, 19)], [(2, 18, 3), (2, 1, 20), (2, 40, 40)]),
    "B + max(B, T) <= 20": Case(["B + max(B, T) <= 20"], PLAIN, [(2, 18, 3), (10, 1, 1)], [(2, 19, 3), (11, 1, 1)]),
    "T == S": Case(["T == S"], {"B": 2, "T": 6, "S": 6}, [(2, 1, 1), (1, 40, 40)], [(2, 6, 5), (2, 5, 6), (2, 0, 0)]),
}  # fmt: skip
DTYPES = {"float32": torch.float32, "float16": torch.float16, "int64": torch.int64, "bool": torch.bool}


class Two(nn.Module):
    """What has the same numbers in any engine, of each type."""

    def forward(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        if x.dtype == torch.bool:
            return x.logical_not(), z.logical_not()
        return -x, z + z


class Zeros(nn.Module):
    """A model whose numbers are all 0, which an engine sees."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[:1, :1] * torch.zeros(1, 1)).reshape(1)


def drawn(dtype: torch.dtype, *shape: int) -> Tensor:
    """Random numbers; zeros of both signs, infinities and NaN among those that can be."""
    torch.manual_seed(sum(shape))
    numbers = torch.randn(shape) * 3
    if dtype.is_floating_point:
        corners = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan")])[: numbers.numel()]
        numbers.reshape(-1)[: len(corners)] = corners
    return (numbers > 0) if dtype == torch.bool else numbers.to(dtype)


def inputs(dtype: torch.dtype, b: int, t: int, s: int) -> tuple[Tensor, Tensor]:
    return drawn(dtype, b, t, 4), drawn(dtype, s, 3)


@lru_cache(maxsize=1)
def captured(dtype: torch.dtype, b: int, t: int, s: int) -> ModelExport:
    """The export of `Two` with an example of these sizes; the versions of a case follow each other and share it."""
    x, z = inputs(dtype, b, t, s)
    return ModelExport(Two(), {"x": x, "z": z}, dynamic_axes={"x": {0: "B", 1: "T"}, "z": {0: "S"}})


def export(case: Case, dtype: torch.dtype, version: str, folder: Path) -> ExportResult:
    target = TractNNEF(version, custom_extensions=[f"tract_assert {line}" for line in case.asserted])
    return captured(dtype, *(case.example[name] for name in "BTS")).to(target, folder / "model.nnef.tar")


def run(result: ExportResult, batches: Sequence[Sequence[Tensor]]) -> EngineReply:
    engine = result.target.engine()
    assert isinstance(engine, TractEngine)
    return engine.run(result.archive, [[t.numpy() for t in batch] for batch in batches], keep_going=True)


def same_bits(got: Any, expected: Tensor) -> bool:
    array = expected.numpy()
    equal = got.dtype == array.dtype and np.array_equal(got, array, equal_nan=array.dtype.kind == "f")
    numbers = ~np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    return equal and bool((np.signbit(got[numbers]) == np.signbit(array[numbers])).all() if numbers.any() else True)


def check(case: Case, dtype: torch.dtype, version: str, folder: Path) -> None:
    result = export(case, dtype, version, folder)
    batches = [inputs(dtype, *sizes) for sizes in (*case.inside, *case.outside)]
    reply = run(result, batches)
    assert reply.status == "ok", reply.message
    assert sorted(reply.refused) == list(range(len(case.inside), len(batches))), reply.refused
    for index, batch in enumerate(batches[: len(case.inside)]):
        assert all(map(same_bits, reply.outputs[index], Two()(*batch))), case.inside[index]
    for index, sizes in enumerate(case.outside, len(case.inside)):
        sizes_text = ", ".join(f"{name} = {size}" for name, size in zip("BTS", sizes, strict=True))
        assert reply.refused[index].startswith(f"{sizes_text} are outside of the range that this archive holds for")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_output_of_zeros_is_guarded_too(version: str, tmp_path: Path) -> None:
    export = ModelExport(Zeros(), {"x": torch.ones(5, 4)}, dynamic_axes={"x": {0: Dim("T", min=2, max=16)}})
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    reply = run(result, [[torch.ones(length, 4)] for length in (2, 16, 17, 40, 1)])
    assert reply.status == "ok", reply.message
    assert sorted(reply.refused) == [2, 3, 4]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_right_inside_and_refused_outside(name: str, version: str, tmp_path: Path) -> None:
    check(CASES[name], torch.float32, version, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "float32"])
def test_any_type_keeps_its_numbers(dtype: str, version: str, tmp_path: Path) -> None:
    check(CASES["B and T"], DTYPES[dtype], version, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_check_says_what_was_refused(version: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU()).eval()
    axes = {"input": {0: "B", 1: Dim("T", min=2, max=16)}}
    result = ModelExport(model, torch.randn(2, 7, 4), dynamic_axes=axes).to(TractNNEF(version), tmp_path / "m.tar")
    outcome = result.assert_parity("approximate")
    assert outcome.range == str(result.range) == "B >= 1, 2 <= T <= 16"
    assert all(result.range.holds(sizes) for sizes in outcome.sizes)
    assert {tuple(sizes.values()) for sizes in outcome.refused_sizes} == {(0, 7), (2, 1), (2, 17)}
    assert "holds for B >= 1, 2 <= T <= 16; refused at" in outcome.describe()


@pytest.mark.parametrize(("model", "guarded"), [(nn.Linear(4, 3), False), (nn.RNN(4, 3), True)])
def test_outputs_that_are_empty_with_their_axes_need_no_statement(
    model: nn.Module, guarded: bool, tmp_path: Path
) -> None:
    export = ModelExport(model, torch.randn(7, 2, 4), dynamic_axes={"input": {0: "T"}})
    result = export.to(TractNNEF("0.20.22"), tmp_path / "model.tar")
    assert result.graph.guarded is guarded
    assert any("in_range" in operation.outputs[0].name for operation in result.graph.operations) is guarded
    result.assert_parity("approximate")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_past(version: str, tmp_path: Path) -> None:
    class Cached(nn.Module):
        def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
            keys = torch.cat([past, x], 1)
            return (x @ keys.transpose(1, 2)).softmax(-1) @ keys, keys

    axes = {"x": {1: "S"}, "past": {1: Dim("P", min=0, max=8)}}
    example = {"x": torch.randn(1, 2, 4), "past": torch.randn(1, 3, 4)}
    result = ModelExport(Cached(), example, dynamic_axes=axes).to(TractNNEF(version), tmp_path / "m.tar")
    outcome = result.assert_parity("approximate")
    assert outcome.range == "0 <= P <= 8, S >= 1"
    assert {sizes["P"] for sizes in outcome.sizes} >= {0, 3, 8}
    assert [dict(sizes) for sizes in outcome.refused_sizes] == [{"P": 9, "S": 2}, {"P": 3, "S": 0}]


@pytest.mark.parametrize("version", ["0.21.8", "0.21.19", "0.22.4", NEWEST])
def test_scenarios_of_a_user_keep_the_range(version: str, tmp_path: Path) -> None:
    lines = ["tract_assert tg: S == 1", "tract_assert pp: S >= 4", "tract_assert P <= 8"]
    axes = {"x": {1: "S"}, "past": {1: "P"}}
    model = net_of(lambda _, x, past: torch.cat([past, x], 1) * 2)
    example = {"x": torch.randn(1, 5, 4), "past": torch.randn(1, 3, 4)}
    target = TractNNEF(version, custom_extensions=lines)
    result = ModelExport(model, example, dynamic_axes=axes).to(target, tmp_path / "m.tar")
    assert str(result.range) == "1 <= P <= 8, S >= 1, S == 1 or S >= 4"
    outcome = result.assert_parity()
    assert {sizes["S"] for sizes in outcome.sizes} >= {1, 5}
    assert {tuple(sizes.values()) for sizes in outcome.refused_sizes} >= {(9, 5), (3, 3)}
