"""Dicts that are keyed by sizes: a miss during capture, and unchanged afterwards."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
from t2n_core.torch_graph.graph.evaluate import evaluate_graph

TABLES: dict[Any, Any] = {}


class Cached(torch.nn.Module):
    """Keeps a table for each length that it has seen."""

    def __init__(self, form: str, **entries: torch.Tensor) -> None:
        super().__init__()
        self.form = form
        self.tables: dict[Any, Any] = {int(size): table for size, table in entries.items()}
        self.nested = [{"tables": dict[Any, Any]()}]

    def table(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        match self.form:
            case "int":
                if length not in self.tables:
                    self.tables[length] = torch.arange(length) * 2.0
                return self.tables[length]
            case "tuple":
                key = (length, (x.shape[0], x.dtype))
                if (positions := self.tables.get(key)) is None:
                    positions = self.tables[key] = torch.arange(length) * 2.0
                return positions
            case "shape":
                return self.tables.setdefault(x.shape, torch.arange(length) * 2.0)
            case "global":
                if length not in TABLES:
                    TABLES[length] = torch.arange(length) * 2.0
                return TABLES[length]
            case "nested":
                inner = self.nested[0]["tables"]
                try:
                    return inner[length]
                except KeyError:
                    inner[length] = torch.arange(length) * 2.0
                return inner[length]
            case _:
                return self.tables.get(length, torch.zeros(length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(x)


def captured(model: torch.nn.Module) -> Any:
    return TorchModuleTracer(model, args=(torch.randn(2, 7),), dynamic_axes={"x": {0: "B", 1: "T"}}).trace()


@pytest.mark.parametrize("form", ["int", "tuple", "shape", "global", "nested"])
@pytest.mark.parametrize("has_run", [False, True])
def test_a_cache_is_a_table_for_any_size(form: str, has_run: bool) -> None:
    TABLES.clear()
    model = Cached(form)
    if has_run:
        for size in (7, 5):
            model(torch.randn(2, size))
    before = {**model.tables}, {**TABLES}, {**model.nested[0]["tables"]}
    model_of_sizes = captured(model)
    assert str(model_of_sizes.range) == "B >= 1, T >= 1"
    after = model.tables, TABLES, model.nested[0]["tables"]
    assert [[*table] for table in after] == [[*table] for table in before]
    assert all(type(table) is dict for table in after)
    x = torch.randn(3, 4)
    graph = model_of_sizes.graph
    value = evaluate_graph(graph, [x], {"B": 3, "T": 4})
    torch.testing.assert_close(value(graph.outputs[0]), model(x))


def test_a_table_of_some_sizes_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"looks up the size .* in a dict, and stores nothing there for a new size"):
        captured(Cached("get", **{"9": torch.ones(9)}))


def test_another_value_for_one_size_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"a dict of the model holds a value for .*T = 9"):
        captured(Cached("int", **{"9": torch.ones(9)}))
