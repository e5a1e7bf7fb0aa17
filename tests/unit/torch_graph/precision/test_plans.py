"""Graphs in float16 by plan: what is cast, what stays, and which units a run in float32 rules out."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.graph import FLOAT16, FLOAT32, Graph
from t2n_core.nnef.options.precision import PlanEntry, PrecisionPlan
from t2n_core.torch_graph.precision.apply import in_precision
from t2n_core.torch_graph.precision.rules import ruled_out
from t2n_core.torch_graph.precision.units import unit_of
from tests.nets import net_of
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST, check_io=False)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(self.first(x)).reshape(-1, 2, 8).relu().reshape(-1, 16)
        return self.second(h), h > 0.5


def lowered(model: nn.Module, x: Tensor, plan: PrecisionPlan) -> Graph:
    return ModelExport(model.eval(), x).lower(TARGET.with_precision(plan))


def dtypes(graph: Graph) -> dict[str, set[str]]:
    dtype_names: dict[str, set[str]] = {}
    for op in graph.operations:
        dtype_names.setdefault(op.name, set()).update(str(value.dtype) for value in op.outputs)
    return dtype_names


def test_all_is_in_float16_but_inputs_outputs_and_comparisons() -> None:
    graph = lowered(Net(), torch.randn(3, 8), PrecisionPlan())
    assert [value.dtype for value in graph.inputs] == [FLOAT32]
    assert [value.dtype.name for value in graph.outputs] == ["float32", "bool"]
    dtype_names = dtypes(graph)
    assert dtype_names["matmul"] == {"float16"}
    assert dtype_names["relu"] == {"float16"}, "moves numbers, and follows them"
    weights = {op.arguments["label"]: value.dtype for op, value in graph.variables()}
    assert weights["first.weight"] == weights["second.weight"] == FLOAT16


def test_products_are_summed_in_float32_where_the_plan_says_so() -> None:
    graph = lowered(Net(), torch.randn(3, 8), PrecisionPlan(accumulation="float32"))
    assert dtypes(graph)["tract_core_einsum"] == {"float32"}
    assert dtypes(graph)["relu"] == {"float16"}
    weights = {op.arguments["label"]: value.dtype for op, value in graph.variables()}
    assert weights["first.weight"] == weights["second.weight"] == FLOAT16


@pytest.mark.parametrize(("number", "dtype"), [(-1e4, "float16"), (-3e38, "float32"), (-math.inf, "float16")])
def test_constants_beyond_float16_stay_float32(number: float, dtype: str) -> None:
    class Masked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            h = torch.sin(x)
            return torch.tanh(torch.where(h > 0, h, torch.full_like(h, number)))

    graph = lowered(Masked(), torch.randn(3, 8), PrecisionPlan())
    assert dtypes(graph)["select"] == {dtype}


def test_entries_name_modules_and_operators() -> None:
    plan = PrecisionPlan("float16", (PlanEntry("float32", ("first",)), PlanEntry("float32", ("*",), ("tanh",))))
    graph = lowered(Net(), torch.randn(3, 8), plan)
    weights = {op.arguments["label"]: value.dtype for op, value in graph.variables()}
    assert (weights["first.weight"], weights["second.weight"]) == (FLOAT32, FLOAT16)
    assert dtypes(graph)["tanh"] == {"float32"}
    assert dtypes(graph)["relu"] == {"float32"}


def test_a_weight_that_both_read_is_there_twice() -> None:
    net = net_of(lambda self, x: F.linear(self.words(x), self.words.weight), words=nn.Embedding(9, 8))
    graph = lowered(net, torch.randint(0, 9, (2, 3)), PrecisionPlan())
    weights = {op.arguments["label"]: value.dtype for op, value in graph.variables() if value.rank == 2}
    assert weights == {"words.weight": FLOAT32, "words.weight.float16": FLOAT16}


def test_the_capture_stays_as_it_is() -> None:
    export = ModelExport(Net().eval(), torch.randn(3, 8))
    before = str(export.lower(TARGET))
    export.lower(TARGET.with_precision(PrecisionPlan()))
    assert str(export.lower(TARGET)) == before
    graph = export.simplified(TARGET)
    in_precision(graph, lambda unit: True)
    assert not [v for v in graph.data_nodes if v.dtype is torch.float16]


def test_a_plan_of_float32_changes_nothing() -> None:
    export = ModelExport(Net().eval(), torch.randn(3, 8))
    plain, planned = (export.lower(target) for target in (TARGET, TARGET.with_precision(PrecisionPlan("float32"))))
    assert [op.name for op in plain.operations] == [op.name for op in planned.operations]


class Ruled(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "epsilon":
            return torch.tanh(x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12).expand_as(x))
        if self.kind == "large":
            return torch.tanh((x * 1e5).sum(-1))
        if self.kind == "small":
            return (x * 1e-7).exp()
        return torch.tanh(x) * 3


RULED = {
    "epsilon": {"clamp_min": "epsilon 1e-12", "div": "reads a value that an epsilon bounds"},
    "large": {"mul": "values of", "sum": "values of", "tanh": "values of"},
    "small": {"mul": "results below"},
    "plain": {},
}


@pytest.mark.parametrize("kind", list(RULED))
def test_a_run_in_float32_rules_out_what_float16_cannot_hold(kind: str) -> None:
    x = torch.linspace(-2, 2, 24).reshape(3, 8)
    graph = ModelExport(Ruled(kind).eval(), x).simplified(TARGET)
    reasons = ruled_out(graph, [x], {})
    assert reasons.keys() == {("", name) for name in RULED[kind]}
    assert all(reasons["", name].startswith(words) for name, words in RULED[kind].items())
    assert reasons.keys() <= {unit_of(op) for op in graph.op_nodes}
