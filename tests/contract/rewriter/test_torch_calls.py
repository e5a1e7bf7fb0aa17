"""Functions of torch's API in all their spellings, also inside torch's own Python, and ATen operators."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import RewriteError, UnsupportedOpsError
from tests.nets import net_of
from tests.releases import NEWEST


def calling(function: Any) -> nn.Module:
    return net_of(lambda self, x: function(self.linear(x)), linear=nn.Linear(4, 6))


def passing_on(subject: Any, **options: Any) -> Any:
    return rewriter.function(subject, **options)(lambda ctx, *args, **kwargs: ctx.original(*args, **kwargs))


torch.manual_seed(3)
ATTENTION = nn.MultiheadAttention(6, 2, batch_first=True).eval()


def attend(x: torch.Tensor) -> torch.Tensor:
    attended: torch.Tensor = ATTENTION(x, x, x)[0]
    return attended


SPELLINGS = {
    "matmul": (torch.matmul, 4, lambda x: torch.linalg.matmul(torch.matmul(x, x.mT), x) + (x @ x.mT).matmul(x)),
    "add": (torch.Tensor.add, 3, lambda x: torch.add(x, 1) + x.add(2)),
    "radd": (torch.add, 2, lambda x: 2.0 + x + x),
    "sub": (torch.sub, 4, lambda x: (2.0 - x) * torch.sub(x, 3) * x.subtract(0.5) * (x - x)),
    "div": (torch.div, 3, lambda x: torch.true_divide(1.0 / (x * x + 1.0), 3.0) + x / 2.0),
    "cat": (torch.cat, 2, lambda x: torch.concat([torch.cat([x, x]), x])),
    "gelu": (F.gelu, 2, lambda x: F.gelu(nn.GELU()(x))),
    "sigmoid": (torch.sigmoid, 3, lambda x: torch.sigmoid(x) + x.sigmoid() + F.sigmoid(x)),
    "softmax through python": (torch.softmax, 2, lambda x: F.softmax(x, -1) + x.softmax(-1)),
    "pooling through a choice": (torch.max_pool1d, 1, lambda x: F.max_pool1d(x, 2)),
    "einsum": (torch.einsum, 1, lambda x: torch.einsum("btf,bsf->bts", x, x)),
    "interpolate": (F.interpolate, 1, lambda x: F.interpolate(x, scale_factor=2)),
    "a choice of two": (F.max_pool1d, 1, lambda x: F.max_pool1d(x, 2)),
    "attention as a whole": (F.multi_head_attention_forward, 1, lambda x: attend(x)),
    "its projection": (F.linear, 3, lambda x: attend(x)),
    "indexing": (torch.Tensor.__getitem__, 3, lambda x: x[0] + x[:, 1:4][0, 0]),
    "a python function": (F.softmax, 1, lambda x: F.softmax(x, -1) + x.softmax(-1)),
    "a given spelling": (F.silu, 2, lambda x: F.silu(x) + F.mish(x)),
}  # fmt: skip


@pytest.mark.parametrize(("subject", "count", "function"), SPELLINGS.values(), ids=SPELLINGS)
def test_all_spellings(proven: Any, x: torch.Tensor, subject: Any, count: int, function: Any) -> None:
    rewrite = passing_on(subject, spellings=[F.mish] if subject is F.silu else ())
    result = proven(calling(function), (x,), rewrite)
    assert result.rewrites.applied == {rewrite: count}


def test_a_list_of_spellings_is_not_shared(proven: Any, x: torch.Tensor) -> None:
    """mmdeploy appends to the list of checkers that it is given, so two registrations share them."""
    more = [F.mish]
    first, second = passing_on(F.silu, spellings=more), passing_on(F.gelu, spellings=more)
    more.append(F.relu)
    assert first.spellings == second.spellings == (F.mish,)


def test_operands_of_a_reflected_operator(proven: Any, x: torch.Tensor) -> None:
    seen: list[Any] = []

    @rewriter.function(torch.sub)
    def sub__any(ctx: rewriter.RewriteContext, input: Any, other: Any) -> Any:
        seen.append((input, isinstance(other, torch.Tensor)))
        return torch.add(input, -other)

    proven(calling(lambda x: 2.0 - x), (x,), sub__any)
    assert seen == [(2.0, True)]


def test_it_is_off_inside_itself_and_on_for_others(proven: Any, x: torch.Tensor) -> None:
    order: list[str] = []

    @rewriter.function(torch.matmul)
    def matmul__any(ctx: rewriter.RewriteContext, input: Any, other: Any) -> Any:
        order.append("matmul")
        return torch.relu(input @ other) - torch.relu(-torch.matmul(input, other))

    @rewriter.function(torch.relu)
    def relu__any(ctx: rewriter.RewriteContext, input: Any) -> Any:
        order.append("relu")
        return torch.clamp(input, min=0.0)

    proven(calling(lambda x: x @ x.mT), (x,), matmul__any, relu__any)
    assert order == ["matmul", "relu", "relu"]


def test_calls_inside_torch_s_python_are_seen(proven: Any, x: torch.Tensor) -> None:
    """`F.multi_head_attention_forward` is one call to the override protocol; attention happens inside it."""
    calls: list[str] = []

    @rewriter.function(F.scaled_dot_product_attention, target="tract")
    def attention__tract(
        ctx: rewriter.RewriteContext, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        calls.append(ctx.path)
        weights = torch.softmax(query @ key.mT * (scale or query.shape[-1] ** -0.5), dim=-1)
        return weights @ value

    model = net_of(
        lambda self, x: self.attention(x, x, x, need_weights=False)[0],
        attention=nn.MultiheadAttention(4, 2, batch_first=True),
    )
    proven(model, (x,), attention__tract, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert calls == ["attention"]


def test_an_aten_overload_whatever_calls_it(proven: Any, x: torch.Tensor) -> None:
    paths: list[str] = []

    @rewriter.function(torch.ops.aten.matmul.default, target="tract")
    def matmul__tract(ctx: rewriter.RewriteContext, self: Any, other: Any) -> Any:
        paths.append(ctx.path)
        assert ctx.target.name == "tract"  # type: ignore[union-attr]
        return (self.unsqueeze(-1) * other.unsqueeze(-3)).sum(-2)

    net = calling(lambda x: x @ x.mT + torch.matmul(x, x.mT) + x.matmul(x.mT) + torch.ops.aten.matmul(x, x.mT))
    result = proven(net, (x,), matmul__tract, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert paths == [""] * 8
    assert "matmul" not in {o.name for o in result.graph.operations if "matmul" in str(o.origin)}


def test_an_aten_rewrite_may_use_the_operator_itself(proven: Any, x: torch.Tensor) -> None:
    @rewriter.function(torch.ops.aten.gelu)
    def gelu__any(ctx: rewriter.RewriteContext, self: Any, *, approximate: str = "none") -> Any:
        return ctx.original(-self * 1.0, approximate=approximate) + self

    result = proven(calling(lambda x: F.gelu(x, approximate="tanh")), (x,), gelu__any)
    assert list(result.rewrites.applied.values()) == [1]


def test_a_failing_aten_rewrite_says_where_it_is(x: torch.Tensor) -> None:
    @rewriter.function("aten::gelu")
    def gelu__any(ctx: rewriter.RewriteContext, self: Any, *, approximate: str = "none") -> Any:
        return self.nothing

    from t2n_core.errors import LowerError

    with pytest.raises(LowerError, match=r"gelu.*test_torch_calls\.py:\d+.*nothing") as caught:
        ModelExport(calling(F.gelu), (x,), rewriters=[gelu__any]).lower(TractNNEF(NEWEST))
    assert caught.value.origin is not None


def test_a_custom_operator_is_written_by_others(proven: Any, x: torch.Tensor) -> None:
    @torch.library.custom_op("t2n_test::cube", mutates_args=())
    def cube(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() ** 3 * factor)

    @cube.register_fake
    def _(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return torch.empty_like(x)

    net = calling(lambda x: cube(x, 0.5))
    with pytest.raises(UnsupportedOpsError, match="t2n_test::cube"):
        proven(net, (x,))
    for subject in (cube, torch.ops.t2n_test.cube.default, "t2n_test::cube"):
        rewrite = rewriter.function(subject)(lambda ctx, x, factor=1.0: x * x * x * factor)
        assert proven(net, (x,), rewrite, dynamic_axes={"x": {0: "B"}}).rewrites.applied == {rewrite: 1}


def test_a_wrong_operator_is_an_error(x: torch.Tensor) -> None:
    with pytest.raises(RewriteError, match="gelu"):
        _ = ModelExport(calling(F.gelu), (x,), rewriters=[passing_on("aten::gelo")]).captured
