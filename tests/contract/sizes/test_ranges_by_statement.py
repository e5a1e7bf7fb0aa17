"""Ranges that a statement checks in the engine, as beside experts and loops, which would evaluate scenarios often."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest
import sympy
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.torch_graph.custom_ops import experts as _declared  # noqa: F401  the operators live there
from tests.contract.sizes.test_size_ranges import CASES, PLAIN, Case, run
from tests.nets import net_of
from tests.releases import NEWEST

EXPERTS_IN = [NEWEST]
LOOPS_IN = ["0.21.8", "0.21.19", "0.22.4"]
"""Versions whose experts, and whose loops, evaluate scenarios repeatedly."""
WIDTH, HIDDEN, EXPERTS, CHOSEN = 4, 5, 3, 2


class Mixed(nn.Module):
    """Experts for each row of `x`; the other output does not depend on them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.router = nn.Parameter(torch.randn(EXPERTS, WIDTH))
        self.up = nn.Parameter(torch.randn(EXPERTS, 2 * HIDDEN, WIDTH))
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN))

    def forward(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.reshape(-1, WIDTH)
        weights, index = F.linear(rows, self.router).softmax(-1).topk(CHOSEN, -1)
        form = (self.down, None, "silu", True, None, None, False, True)
        output = torch.ops.t2n_experts.experts(rows, index, weights, self.up, None, *form)
        return output.reshape(x.shape), z + z


class Unequal(Mixed):
    """Has another result where two sizes are equal."""

    def forward(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        output, twice = super().forward(x, z)
        return (output, twice) if x.shape[1] != z.shape[0] else (output + 1, twice)


class Recurrent(nn.Module):
    """A recurrent net over the second axis of `x`, in both directions; the other output does not depend on it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.LSTM(WIDTH, HIDDEN, 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.net(x)[0], z + z


def inputs(b: int, t: int, s: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(b + t + s)
    return torch.randn(b, t, WIDTH), torch.randn(s, 3)


@lru_cache(maxsize=1)
def captured(model: type[nn.Module], b: int, t: int, s: int) -> ModelExport:
    x, z = inputs(b, t, s)
    return ModelExport(model().eval(), {"x": x, "z": z}, dynamic_axes={"x": {0: "B", 1: "T"}, "z": {0: "S"}})


def export(case: Case, version: str, folder: Path, model: type[nn.Module] = Mixed) -> ExportResult:
    target = TractNNEF(version, custom_extensions=[f"tract_assert {line}" for line in case.asserted])
    return captured(model, *(case.example[name] for name in "BTS")).to(target, folder / "model.nnef.tar")


def scenarios(result: ExportResult) -> list[str]:
    return [line.partition(" ")[2] for line in result.graph.extensions if ":" in line]


def check(case: Case, result: ExportResult, model: nn.Module) -> None:
    """Prove that an archive is right inside of its range, and refused outside of it with the range's message."""
    assert {op.name for op in result.graph.operations} & {"tract_moe_ffn", "tract_core_scan"}
    batches: list[Sequence[Tensor]] = [inputs(*sizes) for sizes in (*case.inside, *case.outside)]
    reply = run(result, batches)
    assert reply.status == "ok", reply.message
    assert sorted(reply.refused) == list(range(len(case.inside), len(batches))), reply.refused
    for index, batch in enumerate(batches[: len(case.inside)]):
        for got, expected in zip(reply.outputs[index], model(*batch), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), expected)
    for index, sizes in enumerate(case.outside, len(case.inside)):
        sizes_text = ", ".join(f"{name} = {size}" for name, size in zip("BTS", sizes, strict=True))
        assert reply.refused[index].startswith(f"{sizes_text} are outside of the range that this archive holds for")


@pytest.mark.parametrize("version", EXPERTS_IN)
@pytest.mark.parametrize("name", CASES)
def test_experts_are_right_inside_and_refused_outside(name: str, version: str, tmp_path: Path) -> None:
    result = export(CASES[name], version, tmp_path)
    check(CASES[name], result, Mixed())
    assert scenarios(result) == []


@pytest.mark.parametrize("version", LOOPS_IN)
@pytest.mark.parametrize("name", CASES)
def test_loops_are_right_inside_and_refused_outside(name: str, version: str, tmp_path: Path) -> None:
    result = export(CASES[name], version, tmp_path, Recurrent)
    check(CASES[name], result, Recurrent())
    assert scenarios(result) == []


class Steps(nn.LSTM):
    def forward(self, input: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(input)[0]


@pytest.mark.parametrize(
    ("version", "axes", "count"),
    [
        ("0.22.4", {0: "B"}, 1),  # the scenario is known from then on
        ("0.22.4", {1: "T"}, 1),  # no size of a step is dynamic
        (NEWEST, {0: "B", 1: "T"}, 4),
    ],
)
def test_loops_that_may_be_streamed_keep_scenarios_that_cost_nothing(
    version: str, axes: dict[int, str], count: int, tmp_path: Path
) -> None:
    net = Steps(WIDTH, HIDDEN, batch_first=True)
    result = ModelExport(net, torch.randn(2, 7, WIDTH), dynamic_axes={"input": axes}).to(
        TractNNEF(version), tmp_path / "model.nnef.tar"
    )
    assert len(scenarios(result)) == count


@pytest.mark.parametrize("version", EXPERTS_IN)
def test_sizes_that_differ(version: str, tmp_path: Path) -> None:
    case = Case([], PLAIN, [(2, 7, 3), (1, 3, 4)], [(2, 3, 3), (2, 40, 40), (2, 0, 3)])
    result = export(case, version, tmp_path, Unequal)
    assert any(isinstance(condition, sympy.Ne) for condition in result.range.conditions)
    check(case, result, Unequal())


@pytest.mark.parametrize("version", ["0.23.0", NEWEST])
def test_equal_sizes_are_not_compared_in_32_bits(version: str, tmp_path: Path) -> None:
    net = net_of(lambda _, x, y: x.softmax(0).sum(0) + y.softmax(0).sum(0))
    example = {"x": torch.randn(4, 1), "y": torch.randn(4, 1)}
    target = TractNNEF(version, custom_extensions=["tract_assert T == S"], check_io=False)
    result = ModelExport(net, example, dynamic_axes={"x": {0: "T"}, "y": {0: "S"}}).to(target, tmp_path / "m.nnef.tar")
    assert scenarios(result) == []
    sizes = [(3, 3), (3, 4), (3 + (1 << 16), 3), (3, 3 + (1 << 17))]
    reply = run(result, [(torch.randn(t, 1), torch.randn(s, 1)) for t, s in sizes])
    assert sorted(reply.refused) == [1, 2, 3]


@pytest.mark.parametrize("version", ["0.23.0", "0.23.5", "0.23.8"])
def test_a_guarded_input_may_be_transposed(version: str, tmp_path: Path) -> None:
    """The engine would move a transpose through the guard's slice, to its bounds as well, and die of it."""
    example = {"x": torch.randn(2, 7, 5)}
    result = ModelExport(net_of(lambda _, x: x.cumsum(1)), example, dynamic_axes={"x": {0: "B", 1: "T"}}).to(
        TractNNEF(version), tmp_path / "m.nnef.tar"
    )
    assert scenarios(result) == []
    reply = run(result, [(torch.randn(3, 1, 5),), (torch.randn(0, 4, 5),), (torch.randn(3, 0, 5),)])
    assert sorted(reply.refused) == [1, 2]


@pytest.mark.parametrize("version", ["0.23.0", NEWEST])
def test_an_input_whose_elements_count_for_nothing_is_guarded(version: str, tmp_path: Path) -> None:
    """The engine drops an operand of a product with 0."""
    net = net_of(lambda _, x: (x * 0.0).softmax(1))
    result = ModelExport(net, {"x": torch.randn(2, 7, 5)}, dynamic_axes={"x": {0: "B", 1: "T"}}).to(
        TractNNEF(version), tmp_path / "m.nnef.tar"
    )
    assert scenarios(result) == []
    reply = run(result, [(torch.randn(3, 1, 5),), (torch.randn(0, 4, 5),), (torch.randn(3, 0, 5),)])
    assert sorted(reply.refused) == [1, 2]


@pytest.mark.parametrize("version", EXPERTS_IN)
def test_scenarios_of_a_user_stay_beside_experts(version: str, tmp_path: Path) -> None:
    case = Case(
        ["tg: T == 1", "pp: T >= 4", "B + S <= 8"], PLAIN,
        [(2, 1, 3), (5, 4, 3)], [(2, 3, 3), (2, 2, 3), (6, 4, 3), (0, 4, 3), (2, 0, 3)],
    )  # fmt: skip
    result = export(case, version, tmp_path)
    check(case, result, Mixed())
    stated = (("tg", "T == 1"), ("tg_again", "T == 1"), ("pp", "T >= 4"), ("pp_again", "T >= 4"))
    assert scenarios(result) == [f"{name}: {condition}" for name, condition in stated]


@pytest.mark.parametrize("version", EXPERTS_IN)
def test_a_range_without_a_statement_has_scenarios_beside_experts(version: str, tmp_path: Path) -> None:
    most = 1 << 40
    case = Case([f"T <= {most}"], PLAIN, [(2, 1, 3), (1, 40, 4)], [(0, 4, 3), (2, 0, 3), (2, 7, 0)])
    result = export(case, version, tmp_path)
    check(case, result, Mixed())
    assert f"range: T <= {most}" in scenarios(result)
