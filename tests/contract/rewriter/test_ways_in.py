"""Rewriters whatever way a model comes in: traced, a method of a module, an exported program, TorchScript."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from t2n_core import ModelExport, TractNNEF, rewriter
from tests.nets import net_of
from tests.releases import NEWEST


class Gate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x) + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.gate = nn.Linear(4, 6), Gate()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.gate(self.linear(x))) @ torch.ones(6, 2)


@rewriter.function(torch.matmul)
def matmul__any(ctx: rewriter.RewriteContext, input: Any, other: Any) -> Any:
    return -ctx.original(-input, other)


@rewriter.method(Gate, "forward")
def gate_forward(ctx: rewriter.RewriteContext, self: Any, x: Any) -> Any:
    assert ctx.path == "gate"
    return ctx.original(self, x) * 1.0


@rewriter.function("aten::sigmoid")
def sigmoid__aten(ctx: rewriter.RewriteContext, self: Any) -> Any:
    return torch.tanh(self * 0.5) * 0.5 + 0.5


@rewriter.symbolic("aten::gelu")
def gelu__any(g: Any, self: Any, approximate: str = "none") -> Any:
    half = g.mul(self, 0.5)
    return g.add(half, g.mul(half, g.call("tract_core_erf", g.mul(self, 0.5**0.5))[0]))


negated = rewriter.module(Gate)(lambda ctx, module: net_of(lambda _, x: 1.0 - torch.sigmoid(-x) + x))


def test_a_traced_model(proven: Any, x: torch.Tensor) -> None:
    rewriters = [matmul__any, gate_forward, sigmoid__aten, gelu__any]
    result = proven(Net(), (x,), *rewriters, capture="trace")
    assert set(result.rewrites.applied) == set(rewriters)
    result = proven(Net(), (x,), negated, capture="trace")
    assert result.rewrites.applied == {negated: 1}


@pytest.mark.parametrize("kind", ["program", "saved program", "script", "saved script"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_captured_model(proven: Any, x: torch.Tensor, kind: str, tmp_path: Path) -> None:
    """Operators and rules only: its Python has run already."""
    net, path = Net().eval(), tmp_path / "saved"
    model: Any = torch.jit.script(net) if "script" in kind else torch.export.export(net, (x,))
    if kind == "saved script":
        model.save(path)
    elif kind == "saved program":
        path = path.with_suffix(".pt2")
        torch.export.save(model, path)
    shared = ModelExport(
        path if "saved" in kind else model, (x,), rewriters=[sigmoid__aten, gelu__any], strict_rewrites=True
    )
    for version in ("0.21.19", NEWEST):
        result = shared.to(TractNNEF(version), tmp_path / f"{version}.tar")
        result.assert_parity("approximate")
    assert result.rewrites.applied == {sigmoid__aten: 1, gelu__any: 1}
    late = ModelExport(path if "saved" in kind else model, (x,), rewriters=[gate_forward, matmul__any, negated])
    with pytest.warns(rewriter.RewriteWarning) as caught:
        late.to(TractNNEF(NEWEST), tmp_path / "late.tar")
    assert str(caught[0].message).count("\n- ") == 3


def test_another_method(proven: Any, x: torch.Tensor) -> None:
    class Other(Net):
        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return self.gate(x.sigmoid()) if float(x.sum()) < 1e30 else x

    @rewriter.method(Other, "encode")
    def encode(ctx: rewriter.RewriteContext, self: Any, x: Any) -> Any:
        return self.gate(x.sigmoid())

    assert proven(Other(), (x,), encode, negated, fn_name="encode").rewrites.applied == {encode: 1, negated: 1}


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() ** 3)


def test_an_autograd_function_in_a_trace(proven: Any, x: torch.Tensor) -> None:
    class Calls(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            cube: torch.Tensor = Cube.apply(x)
            return cube + 1.0

    rule = rewriter.symbolic(Cube, outputs=torch.empty_like)(lambda g, x: g.mul(g.mul(x, x), x))
    assert proven(Calls(), (x,), rule, capture="trace").rewrites.applied == {rule: 1}
