"""Document 003, rewriters, from its symbolics on: what it states, in its order, and what registries are for."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper as sym_help

from t2n_core import ExportResult, KhronosNNEF, ModelExport, TractNNEF, rewriter
from t2n_core.errors import LowerError, RewriteError, UnsupportedOpsError
from t2n_core.rewriter import FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER, get_context
from tests.nets import OfFunction

DIFFERS = {
    "arg_descriptors": "arguments arrive as Python values and not as TorchScript ones, so the descriptors convert and "
    "check them here, and nothing is fed to torch.onnx.symbolic_helper._parse_arg",
    "origin_func only for is_pytorch=False": "it can be called for built-ins too, where it writes the replaced rule",
}
"""Item that does not hold as written -> the reason."""
TRACT = TractNNEF("0.23.9", check_io=False)


@pytest.fixture(autouse=True)
def empty_registries() -> Iterator[None]:
    with FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER:
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


def export(function: Any, args: Any, path: Path, target: Any = TRACT, **options: Any) -> ExportResult:
    return ModelExport(OfFunction(function).eval(), args, **options).to(target, path / "model.nnef.tgz")


def names(result: ExportResult) -> list[str]:
    return [operation.name for operation in result.graph.operations if operation.name != "external"]


def register_squeeze_default(**more: Any) -> None:
    @SYMBOLIC_REWRITER.register_symbolic("squeeze", is_pytorch=True, **more)
    def squeeze_default(g, self, dim=None):
        if dim is None:
            dims = []
            for i, size in enumerate(self.type().sizes()):
                if size == 1:
                    dims.append(i)
        else:
            dims = [sym_help._get_const(dim, "i", "dim")]
        return g.op("Squeeze", self, axes_i=dims)


def test_the_squeeze_example_runs(tmp_path: Path) -> None:
    """The example of squeeze runs, with and without `dim`, and its archive has the axes of size 1."""
    register_squeeze_default(backend="tract")
    result = export(lambda x: (x.relu().squeeze(), (-x).squeeze(2)), torch.randn(1, 3, 1, 5), tmp_path)
    assert [o.arguments["axes"] for o in result.graph.operations if o.name == "squeeze"] == [[0, 2], [2]]
    assert result.rewrites.applied[next(iter(SYMBOLIC_REWRITER))] == 2
    assert result.assert_parity("exact").passed


def test_symbolic_rewriter_is_importable() -> None:
    """`SYMBOLIC_REWRITER` is exported by the package, and its decorator returns the function."""

    def rule(g, self): ...

    assert rewriter.SYMBOLIC_REWRITER is SYMBOLIC_REWRITER
    assert SYMBOLIC_REWRITER.register_symbolic("relu", is_pytorch=True)(rule) is rule


def test_an_operator_that_the_engine_lacks_is_bypassed(tmp_path: Path) -> None:
    """A custom symbolic bypasses nodes that the engine does not have."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.special.gammainc(torch.ones_like(x), x)

    with pytest.raises(UnsupportedOpsError, match="aten::special_gammainc"):
        export(model, torch.rand(3), tmp_path)

    @SYMBOLIC_REWRITER.register_symbolic("special_gammainc", is_pytorch=True)
    def igamma_of_one(g, self, other):
        return g.sub(1.0, g.exp(g.neg(other)))

    result = export(model, torch.rand(3), tmp_path)
    assert names(result) == ["neg", "exp", "sub"]
    assert result.assert_parity("approximate").passed


def test_func_name_is_a_bare_name_of_a_builtin(tmp_path: Path) -> None:
    """`func_name` is just a name for a PyTorch built-in function."""
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(lambda g, self: g.sigmoid(self))
    assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["sigmoid"]


def test_func_name_is_the_full_path_of_an_autograd_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`func_name` is the full path of a custom `torch.autograd.Function`, or the class."""
    module = types.ModuleType("t2n_custom_functions")
    module.Doubled = Doubled  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    @SYMBOLIC_REWRITER.register_symbolic("t2n_custom_functions.Doubled")
    def doubled(g, x, factor):
        return g.add(x, x)

    assert names(export(lambda x: Doubled.apply(x, 2.0), torch.randn(3), tmp_path)) == ["add"]


def test_backend_of_a_symbolic(tmp_path: Path) -> None:
    """With `backend` it is for that target only; without, it is the default, used if the target has none."""
    SYMBOLIC_REWRITER.register_symbolic("tanh", backend="khronos", is_pytorch=True)(lambda g, self: g.relu(self))
    assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["tanh"]
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(lambda g, self: g.sigmoid(self))
    assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["sigmoid"]
    assert names(export(torch.tanh, torch.randn(3), tmp_path, KhronosNNEF(check_io=False))) == ["relu"]


def test_is_pytorch_is_asked_for(tmp_path: Path) -> None:
    """`is_pytorch` is True for a built-in; a bare name without it is refused with what to write."""
    with pytest.raises(RewriteError, match=r"register_symbolic\('squeeze', is_pytorch=True\)"):
        SYMBOLIC_REWRITER.register_symbolic("squeeze")


def test_arg_descriptors_differs(tmp_path: Path) -> None:
    """`arg_descriptors` are the descriptors of the arguments: they convert and check, without `_parse_arg`."""
    seen = []

    @SYMBOLIC_REWRITER.register_symbolic("clamp", is_pytorch=True, arg_descriptors=("v", "i", "f"))
    def clamp(g, x, low, high):
        seen.append((low, high))
        return g.min(g.max(x, float(low)), high)

    result = export(lambda x: x.clamp(-1.0, 2), torch.randn(5), tmp_path)
    assert repr(seen[0]) == "(-1, 2.0)"
    assert names(result) == ["max", "min"]


@pytest.mark.parametrize("descriptor", ["i", "is", "f"])
def test_a_tensor_is_no_constant(descriptor: str, tmp_path: Path) -> None:
    """A tensor in place of a constant that a descriptor asks for is refused, and so is an unknown descriptor."""
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True, arg_descriptors=[descriptor])(lambda g, x: x)
    with pytest.raises(LowerError, match="`x` is a tensor of the graph, not a constant"):
        export(torch.tanh, torch.randn(3), tmp_path)
    with pytest.raises(RewriteError, match="'q' is not a descriptor of an argument"):
        SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True, arg_descriptors=["q"])


def test_a_context_is_the_first_argument_of_a_symbolic(tmp_path: Path) -> None:
    """A context is the first argument, if it has the name `ctx`, and holds the target."""

    @SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)
    def tanh(ctx, g, self):
        assert ctx is get_context() is SYMBOLIC_REWRITER.get_context()
        assert ctx.target is TRACT
        return g.sigmoid(self)

    assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["sigmoid"]


def test_ctx_cfg_of_a_symbolic(tmp_path: Path) -> None:
    """`ctx.cfg` is the deployment config, for a built-in and for an autograd function."""
    config, seen = {"a": 1}, []

    @SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)
    def tanh(ctx, g, self):
        seen.append(ctx.cfg)
        return g.tanh(self)

    @SYMBOLIC_REWRITER.register_symbolic(Plain)
    def plain(ctx, g, x):
        seen.append(ctx.cfg)
        return g.add(x, x)

    export(lambda x: Plain.apply(x.tanh()), torch.randn(3), tmp_path, deploy_config=config)
    assert seen == [config, config]


def test_ctx_origin_func_of_an_autograd_function(tmp_path: Path) -> None:
    """`ctx.origin_func` is what is overridden, for `is_pytorch=False`: the function's own `symbolic`."""

    @SYMBOLIC_REWRITER.register_symbolic(Doubled)
    def doubled(ctx, g, x, factor):
        return ctx.origin_func(g, g.relu(x), factor)

    assert names(export(lambda x: Doubled.apply(x, 2.0), torch.randn(3), tmp_path)) == ["relu", "mul"]
    SYMBOLIC_REWRITER.register_symbolic(Plain)(lambda g, x: get_context().origin_func(g, x))
    with pytest.raises(RewriteError, match="Plain has no static method `symbolic`"):
        export(Plain.apply, torch.randn(3), tmp_path)


def test_ctx_origin_func_of_a_builtin_differs(tmp_path: Path) -> None:
    """`ctx.origin_func` can be used for a built-in too: it writes the replaced rule."""

    @SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)
    def tanh(ctx, g, self):
        return g.relu(ctx.origin_func(g, self))

    assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["tanh", "relu"]


def test_an_unknown_operator_of_g(tmp_path: Path) -> None:
    """`g.op` of an operator that the target does not have is refused with the nearest ones."""
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(lambda g, self: g.op("Tanhh", self))
    with pytest.raises(LowerError, match="did you mean `tanh`"):
        export(torch.tanh, torch.randn(3), tmp_path)


def test_a_registry_is_entered_copied_and_emptied(tmp_path: Path) -> None:
    """A registry can be entered, copied and emptied."""
    with FUNCTION_REWRITER as entered:
        assert entered is FUNCTION_REWRITER
        FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(lambda x: torch.sigmoid(x))
        copied = FUNCTION_REWRITER.copy()
        FUNCTION_REWRITER.clear()
        assert (len(FUNCTION_REWRITER), len(copied)) == (0, 1)
    assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["tanh"]
    assert names(export(torch.tanh, torch.randn(3), tmp_path, rewriters=[*copied])) == ["sigmoid"]


def test_the_option_adds_or_replaces(tmp_path: Path) -> None:
    """`rewriters=[…]` precedes registered ones of its subject, adds to the others, or replaces them all."""
    FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(lambda x: torch.sigmoid(x))
    FUNCTION_REWRITER.register_rewriter(func_name="torch.abs")(lambda x: torch.relu(x))
    mine = rewriter.function(torch.tanh)(lambda ctx, x: torch.exp(x))

    def model(x):
        return torch.tanh(torch.abs(x))

    assert names(export(model, torch.randn(3), tmp_path, rewriters=[mine])) == ["relu", "exp"]
    only = export(model, torch.randn(3), tmp_path, rewriters=[mine], registered_rewriters=False)
    assert names(only) == ["abs", "exp"]


def test_registered_twice_the_later_one_acts(tmp_path: Path) -> None:
    """Of two for one subject the later one acts, with a note; one that the model does not use is none."""
    FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(lambda x: torch.sigmoid(x))
    FUNCTION_REWRITER.register_rewriter(func_name="torch.erf")(lambda x: x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rewriter.RewriteWarning)
        export(torch.tanh, torch.randn(3), tmp_path)
    FUNCTION_REWRITER.register_rewriter(func_name=torch.Tensor.tanh)(lambda x: torch.relu(x))
    with pytest.warns(rewriter.RewriteWarning, match="takes the place of torch.tanh"):
        assert names(export(torch.tanh, torch.randn(3), tmp_path)) == ["relu"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh", ir="onnx"),
        lambda: FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(3),
        lambda: FUNCTION_REWRITER.register_rewriter(func_name=3)(len),
        lambda: SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True, ir="onnx"),
        lambda: SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(3),
        lambda: MODULE_REWRITER.register_rewrite_module(nn.ReLU)(3),
    ],
)
def test_wrong_registrations_are_refused(wrong: Any) -> None:
    """A wrong registration is a RewriteError with a sentence."""
    with pytest.raises(RewriteError):
        wrong()


def test_a_wrapper_with_other_arguments_is_refused(tmp_path: Path) -> None:
    """A class that does not take the module and the config is refused with a sentence."""
    MODULE_REWRITER.register_rewrite_module(OfFunction)(lambda module: module)
    with pytest.raises(RewriteError, match="its first two arguments are the module and the cfg"):
        export(torch.tanh, torch.randn(3), tmp_path)
