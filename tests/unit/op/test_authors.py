"""Errors of a user's own rules, extractors and rewriters: they name the user's line, and blame nobody else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import T2NError
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.op.registry import load_default, op
from t2n_core.rewriter import MODULE_REWRITER, SYMBOLIC_REWRITER
from tests.nets import OfFunction
from tests.releases import NEWEST

NOTHING: dict[str, Any] = {}


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() ** 3)


class Wrong(nn.Module):
    def __init__(self, module: nn.Module, cfg: Any = None) -> None:
        super().__init__()
        self.wrong = NOTHING["module"]


def fails(g: Any, *args: Any, **kwargs: Any) -> Any:
    return NOTHING["rule"]


def lacks_operator(g: Any, self: Any) -> Any:
    return g.no_such_operator(self)


def wrong_axes(g: Any, self: Any) -> Any:
    return g.sum_reduce(self, axes=[7])


def wrong_shape(g: Any, self: Any) -> Any:
    return g.unsqueeze(self, axes=[0])


def of_tanh(rule: Any) -> dict[str, Any]:
    return {"model": nn.Tanh(), "rewriters": [rewriter.symbolic("aten::tanh")(rule)]}


def named(rule: Any) -> Callable[..., Any]:
    """Return a rule with the parameters of tanh."""
    return lambda g, self: rule(g, self)


def registered() -> dict[str, Any]:
    rules = load_default().copy()
    rules.remove("aten::tanh")
    op("aten::tanh", registry=rules)(lacks_operator)
    return {"model": nn.Tanh(), "rules": rules}


def by_mmdeploy() -> dict[str, Any]:
    SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(wrong_shape)
    return {"model": nn.Tanh()}


def by_mmdeploys_module() -> dict[str, Any]:
    MODULE_REWRITER.register_rewrite_module(Twice)(Wrong)
    return {"model": Twice()}


def of_extractor(**methods: Any) -> dict[str, Any]:
    plain = {"MODULE_CLASS": Twice, "convert_to_nnef": lambda self, g, module, inputs, params: list(inputs)}
    type("TwiceExtractor", (ModuleInfoExtractor,), {**plain, **methods})
    return {"model": nn.Sequential(Twice())}


def of_cube(rule: Any, outputs: Any) -> dict[str, Any]:
    return {"model": OfFunction(Cube.apply), "rewriters": [rewriter.symbolic(Cube, outputs=outputs)(rule)]}


CASES: dict[str, tuple[Callable[[], dict[str, Any]], Any, str]] = {
    "exception": (lambda: of_tanh(named(fails)), fails, "KeyError: 'rule'"),
    "operator": (lambda: of_tanh(lacks_operator), lacks_operator, "no attribute or operator `no_such_operator`"),
    "axes": (lambda: of_tanh(wrong_axes), wrong_axes, "`sum_reduce` has no axis 7"),
    "shape": (lambda: of_tanh(wrong_shape), wrong_shape, "the rule returns float32[1, 2, 3] as result"),
    "registered": (registered, lacks_operator, "no attribute or operator `no_such_operator`"),
    "mmdeploy": (by_mmdeploy, wrong_shape, "the rule returns float32[1, 2, 3] as result"),
    "function": (lambda: of_cube(named(fails), torch.empty_like), fails, "KeyError: 'rule'"),
    "outputs": (lambda: of_cube(named(fails), fails), fails, "KeyError: 'rule'"),
    "extractor": (lambda: of_extractor(convert_to_nnef=fails), fails, "of t2n_capture::module_call.TwiceExtractor"),
    "declaration": (lambda: of_extractor(declare_outputs=fails), fails, "KeyError: 'rule'"),
    "generation": (lambda: of_extractor(generate_in_torch_graph=fails), fails, "'rule'"),
    "call": (lambda: {"model": nn.Tanh(), "rewriters": [rewriter.function(torch.tanh)(fails)]}, fails, "'rule'"),
    "module": (lambda: {"model": Twice(), "rewriters": [rewriter.module(Twice)(fails)]}, fails, "KeyError: 'rule'"),
    "mmdeploy's module": (by_mmdeploys_module, Wrong.__init__, "KeyError: 'module'"),
}


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_line_of_the_user(name: str) -> None:
    make, failing, message = CASES[name]
    before = dict(ModuleInfoExtractor._registered)
    try:
        with SYMBOLIC_REWRITER, MODULE_REWRITER:
            options = make()
            export = ModelExport(options.pop("model"), torch.randn(2, 3), **options)
            with pytest.raises(T2NError) as caught:
                export.lower(TractNNEF(NEWEST))
    finally:
        ModuleInfoExtractor._registered.clear()
        ModuleInfoExtractor._registered.update(before)
    text = str(caught.value)
    lines, first = inspect.getsourcelines(failing)
    places = [f"{__file__}:{first + n} in {failing.__name__}" for n in range(len(lines))]
    assert message in text
    assert any(location in text for location in places), text
    assert "bug of the exporter" not in text


def test_fault_of_a_rule_of_this_package_is_reported() -> None:
    rules = load_default().copy()
    rule = rules.find("aten::tanh", TractNNEF(NEWEST).spec)
    assert rule is not None
    faulty_rule = eval("lambda g, self: self.absent", {}, {})
    faulty_rule.__code__ = faulty_rule.__code__.replace(co_filename=rule.function.__code__.co_filename)
    rules.remove("aten::tanh")
    op("aten::tanh", registry=rules)(faulty_rule)
    with pytest.raises(T2NError, match="this is a bug of the exporter") as caught:
        ModelExport(nn.Tanh(), torch.randn(2, 3), rules=rules).lower(TractNNEF(NEWEST))
    assert "rule:" not in str(caught.value)
