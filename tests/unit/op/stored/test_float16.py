"""Weights stored as float16: which ones, with which numbers, and what is written of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from t2n_core.nnef.graph import FLOAT16, Graph
from t2n_core.op.stored.float16 import as_float16, loss
from tests.nets import net_of
from tests.releases import NEWEST


def lowered(model: nn.Module, x: torch.Tensor, version: str = NEWEST, **options: object) -> Graph:
    return ModelExport(model.eval(), x).lower(TractNNEF(version, check_io=False, **options))  # type: ignore[arg-type]


def float16(graph: Graph) -> set[str]:
    return {op.arguments["label"] for op, value in graph.variables() if value.dtype == FLOAT16}


def operators(graph: Graph) -> list[str]:
    return [op.name for op in graph.operations]


def test_numbers_are_rounded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.randn(37, 11)
    monkeypatch.setattr("t2n_core.op.stored.chunks.AT_A_TIME", 100)
    assert torch.equal(as_float16(weight).values, weight.half().float())
    assert torch.equal(as_float16(weight.t()).values, weight.t().half().float())


ROWS = {
    "spread": (torch.linspace(-3, 3, 130).reshape(2, 65), ""),
    "zeros": (torch.zeros(2, 64), ""),
    "infinite": (torch.full((2, 64), -torch.inf), ""),
    "one tiny number": (torch.cat([torch.tensor([1e-7]), torch.ones(127)]).reshape(2, 64), ""),
    "beyond": (torch.cat([torch.tensor([7e4]), torch.ones(127)]).reshape(2, 64), "1 value beyond 65504"),
    "lowest": (torch.full((2, 64), torch.finfo(torch.float32).min), "128 values beyond 65504"),
    "vanishing": (torch.full((2, 64), 1e-9), "2 of 2 rows too small for float16"),
    "subnormal row": (torch.stack([torch.ones(64), torch.full((64,), 1.1e-7)]), "1 of 2 rows too small for float16"),
}


@pytest.mark.parametrize("name", list(ROWS))
def test_what_float16_cannot_stand_for(name: str) -> None:
    weight, reason = ROWS[name]
    assert loss(weight) == reason


def test_matrices_are_stored_as_float16_under_their_labels() -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8))
    model[0].weight.data[0, 0] = 7e4
    graph = lowered(model, torch.randn(2, 4, 16), weights="float16")
    assert float16(graph) == {"1.weight"}
    assert graph.stored.keys() == {"1.weight"}
    assert graph.declined["weights"] == ["`0.weight` stays float32: 1 value beyond 65504"]
    stored = next(value for op, value in graph.variables() if op.arguments["label"] == "1.weight")
    assert stored.weight is not None
    numbers = np.frombuffer(b"".join(stored.weight.chunks()), "<f2")
    np.testing.assert_array_equal(numbers, model[1].weight.detach().half().numpy().ravel())


def test_a_norm_is_folded_by_the_engine() -> None:
    """So that the archive holds the weight of the state_dict: scaled numbers would have to be rounded again."""
    graph = lowered(nn.Sequential(nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8)), torch.randn(2, 4, 16), weights="float16")
    product = next(op for op in graph.operations if op.name == "mul" and op.outputs[0].shape == (8, 4, 3))
    filters, scale = product.inputs()
    assert filters.producer is not None
    assert filters.producer.name == "tract_core_cast"
    assert scale.shape == (8, 1, 1)
    assert float16(graph) == {"0.weight"}
    (of_scale,) = (op.arguments["label"] for op, value in graph.variables() if value is scale)
    assert {op.arguments["label"] for op, _ in graph.variables()} == {"0.weight", "0.bias.normed", of_scale}


def test_a_capture_serves_both_forms() -> None:
    """What is computed of a weight at export is computed of the rounded one for one archive only."""
    net = net_of(lambda self, x: x @ (self.weight * 2).t(), weight=nn.Parameter(torch.randn(16, 8)))
    export = ModelExport(net.eval(), torch.randn(3, 8))
    weight = export.model.weight.detach()

    def numbers(**options: object) -> np.ndarray:
        graph = export.lower(TractNNEF(NEWEST, check_io=False, **options))  # type: ignore[arg-type]
        (value,) = (value for _, value in graph.variables() if value.rank == 2)
        assert value.weight is not None
        return np.frombuffer(b"".join(value.weight.chunks()), value.dtype).astype(np.float32)

    for _ in range(2):
        assert {*numbers()} == {*(2 * weight).numpy().ravel()}
        assert {*numbers(weights="float16")} == {*(2 * weight.half().float()).numpy().ravel()}


def test_what_is_computed_at_export_is_told() -> None:
    model = nn.utils.parametrizations.weight_norm(nn.Conv1d(16, 16, 3))
    graph = lowered(model, torch.randn(1, 16, 9), weights="float16")
    assert graph.declined["weights"] == ["`constant_0` (`_weight_norm` in the model) stays float32: computed at export"]


@pytest.mark.parametrize(("version", "in_parts"), [("0.21.19", True), (NEWEST, False)])
def test_a_weight_in_slices_is_reported(version: str, in_parts: bool) -> None:
    net = net_of(
        lambda self, x: (x @ self.weight[8:24]) * (x @ self.weight[24:]), weight=nn.Parameter(torch.randn(40, 9))
    )
    graph = lowered(net, torch.randn(3, 16), version, weights="float16")
    notes = ["`weight` stays float32: the archive holds slices of it"]
    assert (float16(graph), graph.declined.get("weights", [])) == ((set(), notes) if in_parts else ({"weight"}, []))


@pytest.mark.parametrize(
    ("version", "inside"), [("0.20.22", False), ("0.21.19", True), ("0.22.4", True), ("0.23.5", False)]
)
def test_weights_of_a_scan_are_cast_where_they_are_constants(version: str, inside: bool) -> None:
    graph = lowered(nn.GRU(16, 16), torch.randn(5, 1, 16), version, weights="float16")
    (scan,) = (op for op in graph.operations if op.name == "tract_core_scan")
    dtypes = {value.dtype for _, value in scan.arguments["full"] if value.shape == (48, 16)}
    assert (FLOAT16 in dtypes) == inside
    assert ("tract_core_cast(" in graph.fragments[scan.arguments["body"]].text) == inside


PATTERNS = {
    "all": ("float16", {"body.0.weight", "body.1.weight", "head.weight"}),
    "module": ({"body": "float16"}, {"body.0.weight", "body.1.weight"}),
    "first fits": ({"body.1": "float32", "*": "float16"}, {"body.0.weight", "head.weight"}),
    "name": ({"*.1.weight": "float16"}, {"body.1.weight"}),
}


@pytest.mark.parametrize("name", list(PATTERNS))
def test_layers_are_chosen_by_pattern(name: str) -> None:
    patterns, expected = PATTERNS[name]
    model = nn.Sequential()
    model.add_module("body", nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))
    model.add_module("head", nn.Linear(8, 9))
    assert float16(lowered(model, torch.randn(2, 8), weights=patterns)) == expected


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(InputError, match="'bfloat16' is not one of float16, int8, q4_0, float32"):
        TractNNEF(NEWEST, weights="bfloat16")


@pytest.mark.parametrize(("version", "pieces"), [("0.22.4", 1), ("0.23.3", 9), ("0.23.5", 3), (NEWEST, 3)])
def test_large_weights_are_cast_in_pieces(version: str, pieces: int) -> None:
    """Each of which the engine computes before the first run; the weight itself stays one variable."""
    graph = lowered(nn.Linear(1500, 1500), torch.randn(2, 1500), version, weights="float16")
    assert operators(graph).count("tract_core_cast") == pieces
    assert float16(graph) == {"weight"}
    of_float16 = lowered(
        nn.Conv1d(1500, 1500, 1).half(),
        torch.randn(1, 1500, 2).half(),
        version,
        force_linear_accumulation_in_f32=True,
    )
    casts = [
        op for op in of_float16.operations if op.name == "tract_core_cast" and op.outputs[0].shape[1:] == (1500, 1)
    ]
    assert len(casts) == pieces
