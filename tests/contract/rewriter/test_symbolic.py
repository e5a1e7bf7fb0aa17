"""Rules of an export's own: over built-in ones, for custom operators and autograd functions; rules switched off."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF, rewriter
from t2n_core.errors import CaptureError, RegistryError, RewriteError, UnsupportedOpsError
from t2n_core.rewriter.patches import _patches
from tests.nets import net_of
from tests.releases import NEWEST


def calling(function: Any) -> nn.Module:
    return net_of(lambda self, x: function(self.linear(x)), linear=nn.Linear(4, 6))


class Cube(torch.autograd.Function):
    """factor * x ** 3 in numpy, which no tracer can follow; its derivative does not matter here."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() ** 3 * factor)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


class SubCube(Cube):
    pass


class Pair(torch.autograd.Function):
    """Two results, by operators that can be followed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return x * 2.0, x.sum(-1)


saved_apply = Cube.apply
"""How libraries hold an autograd function."""


def cube_rule(g: Any, x: Any, factor: float) -> Any:
    return g.mul(g.mul(g.mul(x, x), x), factor)


def like_first(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


def statements(result: Any) -> set[str]:
    return {o.name for o in result.graph.operations}


def test_a_rule_over_the_built_in_one(proven: Any, x: torch.Tensor) -> None:
    @rewriter.symbolic("aten::hardtanh", target="tract")
    def hardtanh__tract(g: Any, self: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
        return g.sub(g.add(g.min(g.max(self, min_val), max_val), 1.0), 1.0)

    net = calling(F.hardtanh)
    plain = statements(proven(net, (x,)))
    result = proven(net, (x,), hardtanh__tract, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert "sub" in statements(result) - plain
    assert result.rewrites.applied == {hardtanh__tract: 1}


def test_a_rule_for_all_overloads_beats_a_built_in_one_for_an_overload(proven: Any, x: torch.Tensor) -> None:
    @rewriter.symbolic("aten::sum")
    def sum__any(g: Any, self: Any, dim: Any = None, keepdim: bool = False) -> Any:
        axes = [d % self.rank for d in dim]
        total = g.neg(g.sum_reduce(g.neg(self), axes=axes))
        return total if keepdim else g.squeeze(total, axes=axes)

    assert "neg" in statements(proven(calling(lambda x: x.sum(-1)), (x,), sum__any))


def test_only_the_target_it_is_for(x: torch.Tensor) -> None:
    rule = rewriter.symbolic("aten::relu", target="khronos")(lambda g, self: g.max(self, 0.0))
    export = ModelExport(calling(F.relu), (x,), rewriters=[rule])
    assert "max" in {o.name for o in export.lower(KhronosNNEF()).operations}
    assert "max" not in {o.name for o in export.lower(TractNNEF(NEWEST)).operations}
    assert len(export._captures.entries) == 1  # rules change nothing of what is captured


def test_a_built_in_rule_is_switched_off(proven: Any, x: torch.Tensor) -> None:
    """The need behind open-mmlab/mmdeploy#2218."""
    off = rewriter.switch_off("aten::silu", target="tract")
    net = calling(F.silu)
    result = proven(net, (x,), off)
    assert result.rewrites.applied[off] >= 1
    with pytest.raises(UnsupportedOpsError, match="no rule for aten::bmm"):
        proven(calling(lambda x: torch.bmm(x, x.mT)), (x,), rewriter.switch_off(torch.ops.aten.bmm))


def test_a_rule_for_a_custom_operator(proven: Any, x: torch.Tensor) -> None:
    @torch.library.custom_op("t2n_test::scaled_sign", mutates_args=())
    def scaled_sign(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(abs(x.detach().numpy()) * factor)

    scaled_sign.register_fake(lambda x, factor=1.0: torch.empty_like(x))
    net = calling(lambda x: scaled_sign(x, 0.5))
    for subject in (scaled_sign, "t2n_test::scaled_sign"):
        rule = rewriter.symbolic(subject)(lambda g, x, factor: g.mul(g.abs(x), factor))
        assert proven(net, (x,), rule, dynamic_axes={"x": {1: "T"}}).rewrites.applied == {rule: 1}


APPLIED = {
    "apply": lambda x: Cube.apply(x, 0.5),
    "saved handle": lambda x: saved_apply(x, 0.5),
    "subclass": lambda x: SubCube.apply(x, 0.5),
}


@pytest.mark.parametrize("call", APPLIED.values(), ids=APPLIED)
def test_an_autograd_function_is_one_node(proven: Any, x: torch.Tensor, call: Any) -> None:
    with pytest.raises(CaptureError):
        proven(calling(call), (x,))
    rule = rewriter.symbolic(Cube, target="tract", outputs=like_first)(cube_rule)
    result = proven(calling(call), (x,), rule, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert result.rewrites.applied == {rule: 1}
    assert not _patches


def test_the_outputs_of_an_autograd_function_are_those_of_its_forward(proven: Any, x: torch.Tensor) -> None:
    @rewriter.symbolic(Pair)
    def pair(g: Any, x: Any) -> Any:
        axis = x.rank - 1
        return g.add(x, x), g.squeeze(g.sum_reduce(x, axes=[axis]), axes=[axis])

    result = proven(calling(Pair.apply), (x,), pair, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert "mul" not in statements(result)


def test_an_autograd_function_that_reads_data_is_refused_with_what_to_declare(proven: Any, x: torch.Tensor) -> None:
    class Positive(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.sum() > 0 else x

    net = calling(Positive.apply)
    rule = rewriter.symbolic(Positive)(lambda g, x: g.select(g.gt(g.sum_reduce(x, axes=[0, 1, 2]), 0.0), x, x))
    with pytest.raises(CaptureError, match=r"`outputs=` of the rule for .*Positive can return empty tensors"):
        proven(net, (x,), rule)
    gc.collect()
    proven(nn.Linear(4, 6), (x,))


def test_other_autograd_functions_are_followed(proven: Any, x: torch.Tensor) -> None:
    rule = rewriter.symbolic(Cube, outputs=like_first)(cube_rule)
    proven(calling(lambda x: Pair.apply(Cube.apply(x, 2.0))), (x,), rule)


def test_a_rule_with_wrong_arguments(x: torch.Tensor) -> None:
    wrong = rewriter.symbolic("aten::relu")(lambda g, self, alpha: self)
    export = ModelExport(calling(F.relu), (x,), rewriters=[wrong])
    with pytest.raises(RegistryError, match=r"test_symbolic\.py:\d+: aten::relu has no argument alpha"):
        export.lower(TractNNEF(NEWEST))
    short = rewriter.symbolic(Cube, outputs=like_first)(lambda g, x: x)
    export = ModelExport(calling(lambda x: Cube.apply(x, 1.0)), (x,), rewriters=[short])
    with pytest.raises(UnsupportedOpsError, match=r"the rule for .*Cube \(.*test_symbolic\.py:\d+\)"):
        export.lower(TractNNEF(NEWEST))
    export = ModelExport(calling(F.relu), (x,), rewriters=[rewriter.symbolic(nn.ReLU)(lambda g, x: x)])
    with pytest.raises(RewriteError, match="not an operator or a class of autograd functions"):
        _ = export.captured


def test_a_rule_that_gives_another_shape_is_refused(x: torch.Tensor) -> None:
    rule = rewriter.symbolic("aten::relu")(lambda g, self: g.unsqueeze(self, axes=[0]))
    with pytest.raises(UnsupportedOpsError, match="PyTorch returns"):
        ModelExport(calling(F.relu), (x,), rewriters=[rule]).lower(TractNNEF(NEWEST))
