"""Schemes of names, and what a model caches while it is captured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from tests.nets import Attention
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST, check_io=False)


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
    with pytest.raises(InputError, match="not one of natural, raw, numeric"):
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
        export.to(TractNNEF(NEWEST), tmp_path / f"{scheme}.tar").assert_parity("approximate")


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


class Scaled(nn.Module):
    """Takes and gives structures, and numbers that are fixed."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: Any = None, z: Any = None) -> Any:
        return self.function(x, y, z)


@dataclass
class Settings:
    scale: float = 2.5


def one() -> torch.Tensor:
    return torch.randn(2, 3)


STRUCTURES: dict[str, tuple[Any, Any, list[str], list[str], list[str]]] = {
    # function, arguments, names of arguments and of results, names of tensors
    "pair in": (
        lambda x, y, z: x * y[0] - y[1],
        lambda: (one(), (one(), one())),
        ["a", "p"],
        ["b"],
        ["a", "p_0", "p_1", "b"],
    ),
    "pair out": (
        lambda x, y, z: (x * 2, (x * 3, x * 4)),
        lambda: (one(),),
        ["a"],
        ["b", "p"],
        ["a", "b", "p_0", "p_1"],
    ),
    "object in": (lambda x, y, z: x * y.scale, lambda: (one(), Settings()), ["a", "settings"], ["b"], ["a", "b"]),
    "dictionary in": (
        lambda x, y, z: x * y["k"] - y["l"],
        lambda: (one(), {"k": one(), "l": one()}),
        ["a", "d"],
        ["b"],
        ["a", "d_k", "d_l", "b"],
    ),
    "object in a dictionary": (
        lambda x, y, z: x * y["k"] * y["s"].scale,
        lambda: (one(), {"k": one(), "s": Settings()}),
        ["a", "d"],
        ["b"],
        ["a", "d", "b"],
    ),
    "dictionary out": (lambda x, y, z: {"k": x * 2, "l": x * 3}, lambda: (one(),), ["a"], ["d"], ["a", "d_k", "d_l"]),
    "numbers in": (
        lambda x, y, z: x ** (2 * z) if y else x,
        lambda: (one(), True, 2),
        ["a", "b", "c"],
        ["d"],
        ["a", "d"],
    ),
}


@pytest.mark.parametrize("capture", ["export", "trace"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_names_of_arguments_and_results_are_those_of_their_tensors(name: str, capture: Any, tmp_path: Path) -> None:
    function, arguments, inputs, outputs, expected = STRUCTURES[name]
    torch.manual_seed(3)
    model = Scaled(function).eval()
    export = ModelExport(model, arguments(), input_names=inputs, output_names=outputs, capture=capture)
    result = export.to(TractNNEF(NEWEST), tmp_path / "a.nnef.tar")
    assert [*result.input_names, *result.output_names] == expected


def test_two_names_of_three_arguments_are_refused() -> None:
    model = Scaled(lambda x, y, z: x * y[0] - y[1] + z)
    with pytest.raises(InputError, match="2 input names for 4 input tensors in 3 arguments: a, b"):
        ModelExport(model, (one(), (one(), one()), one()), input_names=["a", "b"])
