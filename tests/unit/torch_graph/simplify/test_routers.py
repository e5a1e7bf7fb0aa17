"""Routers in front of experts, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.simplify.routers import EXPERTS, ROUTED, with_routers
from tests.contract.cases import Case
from tests.contract.cases import experts as cases
from tests.contract.cases.experts import mixture

GATES = {
    "softmax_topk": (cases.share, cases.softmax_topk),
    "softmax_all": (cases.softmax_all,),
    "sigmoid": (cases.sigmoid, cases.sigmoid_after),
    "raw": (cases.raw,),
}


def routed(case: Case) -> TorchModuleIRGraph:
    return with_routers(case.export().captured.graph)


@pytest.mark.parametrize(
    ("gate", "function"), [(gate, function) for gate, functions in GATES.items() for function in functions]
)
def test_a_router_is_recognised(gate: str, function: Any) -> None:
    graph = routed(mixture("unit", function, biases=True))
    (op,) = (op for op in graph.op_nodes if op.kind in (EXPERTS, ROUTED))
    assert (op.kind, op.arguments["gate"], op.arguments["k"]) == (ROUTED, gate, 2)
    assert op.arguments["router"].shape == (cases.EXPERTS, cases.WIDTH)
    assert op.arguments["router_bias"].shape == (cases.EXPERTS,)
    assert [used.kind for used in graph.used_ops()] == [ROUTED]
    assert graph.operator_notes == ()


@pytest.mark.parametrize(
    ("function", "reason"), [(cases.scaled, "no softmax, sigmoid or logits"), (cases.smallest, "not the largest")]
)
def test_what_no_gate_of_the_operator_computes_stays(function: Any, reason: str) -> None:
    graph = routed(mixture("unit", function))
    assert EXPERTS in [op.kind for op in graph.op_nodes]
    (note,) = graph.operator_notes
    assert reason in note


def test_the_gelu_of_erf_is_not_the_engines() -> None:
    (note,) = routed(mixture("unit", activation="erf")).operator_notes
    assert "gelu" in note


def test_a_router_of_another_tensor_is_none() -> None:
    case = mixture("unit", hidden=cases.randn(cases.TOKENS, cases.WIDTH)).dynamic({0: {0: "N"}, 1: {0: "N"}})
    (note,) = routed(case).operator_notes
    assert "no linear layer of the experts' input" in note
