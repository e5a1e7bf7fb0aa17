"""`SYMBOLIC_REWRITER` as in mmdeploy: rules of PyTorch's operators and of autograd functions."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.onnx import symbolic_helper

from t2n_core import ExportResult, KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import LowerError, RewriteError, UnsupportedOpsError
from t2n_core.rewriter import SYMBOLIC_REWRITER, get_context
from tests.nets import OfFunction
from tests.releases import NEWEST

TRACT = TractNNEF(NEWEST, check_io=False)


@pytest.fixture(autouse=True)
def empty_registry() -> Iterator[None]:
    with SYMBOLIC_REWRITER:
        yield


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    @staticmethod
    def symbolic(g: Any, x: Any, factor: float) -> Any:
        return g.op("mul", x, factor)


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


def export(function: Any, path: Path, x: torch.Tensor | None = None) -> ExportResult:
    return ModelExport(OfFunction(function).eval(), torch.rand(3) if x is None else x).to(TRACT, path / "m.tgz")


def names(function: Any, target: Any = TRACT, **options: Any) -> list[str]:
    graph = ModelExport(OfFunction(function).eval(), torch.randn(3), **options).lower(target)
    return [operation.name for operation in graph.operations if operation.name != "external"]


def test_example_of_squeeze(tmp_path: Path) -> None:
    """It reads sizes of a value, constants by torch.onnx's helper, and names an operator of ONNX."""

    @SYMBOLIC_REWRITER.register_symbolic("squeeze", is_pytorch=True, backend="tract")
    def squeeze_default(g, self, dim=None):
        if dim is None:
            dims = []
            for i, size in enumerate(self.type().sizes()):
                if size == 1:
                    dims.append(i)
        else:
            dims = [symbolic_helper._get_const(dim, "i", "dim")]
        return g.op("Squeeze", self, axes_i=dims)

    def model(x: torch.Tensor) -> Any:
        return x.relu().squeeze(), (-x).squeeze(2), x.sign().squeeze(-2), x.abs().squeeze(-4)

    result = export(model, tmp_path, torch.randn(1, 3, 1, 5))
    squeezes = [operation for operation in result.graph.operations if operation.name == "squeeze"]
    assert [squeeze.arguments["axes"] for squeeze in squeezes] == [[0, 2], [2], [2], [0]]
    assert result.rewrites.applied[next(iter(SYMBOLIC_REWRITER))] == 4
    assert result.assert_parity("exact").passed


def test_rule_of_an_unsupported_operator(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.special.gammainc(torch.ones_like(x), x)

    with pytest.raises(UnsupportedOpsError, match="aten::special_gammainc"):
        export(model, tmp_path)

    @SYMBOLIC_REWRITER.register_symbolic("special_gammainc", is_pytorch=True)
    def igamma_of_one(g, self, other):
        return g.sub(1.0, g.exp(g.neg(other)))

    assert export(model, tmp_path).assert_parity("approximate").passed


def test_func_name_of_an_autograd_function_is_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("t2n_custom_functions")
    module.Doubled = Doubled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    SYMBOLIC_REWRITER.register_symbolic("t2n_custom_functions.Doubled")(lambda g, x, factor: g.add(x, x))
    assert names(lambda x: Doubled.apply(x, 2.0)) == ["add"]


def test_backend() -> None:
    SYMBOLIC_REWRITER.register_symbolic("tanh", backend="khronos", is_pytorch=True)(lambda g, self: g.relu(self))
    assert names(torch.tanh) == ["tanh"]
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(lambda g, self: g.sigmoid(self))
    assert names(torch.tanh) == ["sigmoid"]
    assert names(torch.tanh, KhronosNNEF(check_io=False)) == ["relu"]


def test_bare_name_needs_is_pytorch() -> None:
    with pytest.raises(RewriteError, match=r"register_symbolic\('squeeze', is_pytorch=True\)"):
        SYMBOLIC_REWRITER.register_symbolic("squeeze")


def test_arg_descriptors_convert() -> None:
    seen = []

    @SYMBOLIC_REWRITER.register_symbolic("clamp", is_pytorch=True, arg_descriptors=("v", "i", "f"))
    def clamp(g, x, low, high):
        seen.append((low, high))
        return g.min(g.max(x, float(low)), high)

    assert names(lambda x: x.clamp(-1.0, 2)) == ["max", "min"]
    assert repr(seen[0]) == "(-1, 2.0)"


@pytest.mark.parametrize("descriptor", ["i", "is", "f"])
def test_arg_descriptors_refuse_tensors(descriptor: str) -> None:
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True, arg_descriptors=[descriptor])(lambda g, x: x)
    with pytest.raises(LowerError, match="`x` is a tensor of the graph, not a constant"):
        names(torch.tanh)


def test_context() -> None:
    config, seen = {"a": 1}, []

    @SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)
    def tanh(ctx, g, self):
        assert ctx is get_context() is SYMBOLIC_REWRITER.get_context()
        assert ctx.target is TRACT
        seen.append(ctx.cfg)
        return g.relu(ctx.origin_func(g, self))

    @SYMBOLIC_REWRITER.register_symbolic(Plain)
    def plain(ctx, g, x):
        seen.append(ctx.cfg)
        return g.add(x, x)

    assert names(lambda x: Plain.apply(x.tanh()), deploy_config=config) == ["tanh", "relu", "add"]
    assert seen == [config, config]


def test_origin_func_of_an_autograd_function() -> None:
    @SYMBOLIC_REWRITER.register_symbolic(Doubled)
    def doubled(ctx, g, x, factor):
        return ctx.origin_func(g, g.relu(x), factor)

    assert names(lambda x: Doubled.apply(x, 2.0)) == ["relu", "mul"]
    SYMBOLIC_REWRITER.register_symbolic(Plain)(lambda g, x: get_context().origin_func(g, x))
    with pytest.raises(RewriteError, match="Plain has no static method `symbolic`"):
        names(Plain.apply)


def test_unknown_operator_names_the_nearest() -> None:
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(lambda g, self: g.op("Tanhh", self))
    with pytest.raises(LowerError, match="did you mean `tanh`"):
        names(torch.tanh)
