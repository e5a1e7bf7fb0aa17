"""Schemes of names, and what a model caches while it is captured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from tests.nets import Attention

TARGET = TractNNEF("0.23.9", check_io=False)


def test_naming_schemes() -> None:
    def names(scheme: Any) -> list[str]:
        torch.manual_seed(0)
        export = ModelExport(Attention().eval(), torch.randn(2, 5, 8), nnef_variable_naming_scheme=scheme)
        graph = export.lower(TARGET)
        assert {o.arguments["label"] for o in graph.operations if o.name == "variable"} >= {"qkv.weight", "qkv.bias"}
        assert (graph.inputs[0].name, graph.outputs[0].name) == ("x", "output")
        return [v.name for o in graph.operations for v in o.outputs if o.name not in ("external", "variable")]

    assert "qkv_linear_matmul" in names("natural")
    assert {"chunk_0", "chunk_1", "scaled_dot_product_attention"} <= set(names("raw"))
    numeric = names("numeric")
    assert numeric[-1] == "output"
    assert all(name[0] == "v" and name[1:].isdigit() for name in numeric[:-1])
    assert len(set(numeric)) == len(numeric) == len(names("natural")) == len(names("raw"))
    with pytest.raises(InputError, match="none of natural, raw, numeric"):
        names("camel")


def test_names_do_not_change_the_numbers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    for scheme in ("raw", "numeric"):
        export = ModelExport(
            Attention().eval(),
            torch.randn(2, 5, 8),
            dynamic_axes={"x": {1: "v0"}},
            nnef_variable_naming_scheme=scheme,  # type: ignore[arg-type]
        )
        export.to(TractNNEF("0.23.9"), tmp_path / f"{scheme}.tar").assert_parity("approximate")


class Caching(nn.Module):
    """Keeps what it computes in a dict, as some libraries do in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(3, 3)
        self.cache: dict[str, torch.Tensor] = {}
        self.seen: list[list[int]] = [[]]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if "w" not in self.cache:
            self.cache["w"] = self.table.weight.exp()
        self.seen[0].append(x.shape[0])
        return x @ self.cache["w"]


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_what_a_model_caches_while_it_is_captured_is_taken_out_again(capture: Any) -> None:
    model = Caching().eval()
    cache, seen = model.cache, model.seen
    export = ModelExport(model, torch.randn(2, 3), dynamic_axes={"x": {0: "B"}}, capture=capture)
    export.lower(TARGET)
    assert model.cache is cache
    assert model.seen is seen
    assert (cache, seen) == ({}, [[]])
    assert export.samples[0].expected[0].shape == (2, 3)
