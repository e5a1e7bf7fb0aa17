"""Modules exchanged while a model is exported: all places, shared ones once, the user's model as it was."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import CaptureError, RewriteError
from tests.nets import net_of
from tests.releases import NEWEST


class Gate(nn.Module):
    """weight * x where the data says so, which no tracer can follow."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight if float(x.sum()) < 1e30 else x


class OtherGate(Gate):
    """Inherits forward."""


class OwnGate(Gate):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + 1.0


class Plain(nn.Module):
    def __init__(self, ctx: rewriter.RewriteContext, gate: Gate, bias: float = 0.0) -> None:
        super().__init__()
        self.gate, self.bias = gate, bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate.weight + self.bias


class Input(nn.Module):
    """Calls its argument otherwise than the module that it replaces."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input * self.gate.weight


class Half(nn.Module):
    def __init__(self, gate: nn.Module) -> None:
        super().__init__()
        self.gate = gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gate(x)


class Net(nn.Module):
    """The same gate in six places: twice as a child, under two parents, and in plain lists, tuples and attributes."""

    def __init__(self, gate: nn.Module) -> None:
        super().__init__()
        self.first = self.second = gate
        self.left, self.right = Half(gate), Half(gate)
        object.__setattr__(self, "hidden", gate)
        self.listed, self.tupled, self.named = [gate], (gate, 3), {"gate": gate}
        self.register_buffer("offset", torch.randn(4))
        self.left.register_forward_hook(lambda *_: None)
        self.first.requires_grad_(False)
        self.right.train()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.first(x)) + self.left(x) - self.right(x * 2.0)
        x = self.hidden(x) + self.listed[0](x) + self.tupled[0](x) * self.named["gate"](x)
        return x + self.offset


def items(held: Any) -> list[Any]:
    if isinstance(held, dict):
        return [*held, *held.values()]
    return list(held) if isinstance(held, list | tuple) else []


def facts(model: nn.Module) -> list[Any]:
    entries: list[Any] = []
    for name, module in model.named_modules(remove_duplicate=False):
        attributes = {key: (id(value), [id(item) for item in items(value)]) for key, value in vars(module).items()}
        entries.append((name, id(module), type(module), module.training, attributes))
    for name, tensor in [*model.named_parameters(remove_duplicate=False), *model.named_buffers()]:
        entries.append((name, id(tensor), tensor.requires_grad, tensor.detach().clone().numpy().tobytes()))
    return entries


def test_a_shared_module_is_replaced_once_in_every_place(proven: Any, x: torch.Tensor) -> None:
    made: list[tuple[str, Any]] = []

    @rewriter.module(Gate)
    def plain_gate(ctx: rewriter.RewriteContext, module: Gate) -> nn.Module:
        assert ctx.original is module
        made.append((ctx.path, module))
        return Plain(ctx, module)

    net = Net(Gate(4)).eval()
    with pytest.raises(CaptureError):
        proven(net, (x,))
    before = facts(net)
    result = proven(net, (x,), plain_gate, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert made == [("first", net.first)]
    assert facts(net) == before
    copy.deepcopy(net)
    labels = [o.arguments["label"] for o, _ in result.graph.variables()]
    assert "first.weight" in labels  # the name that the user knows, not that of the wrapper


@pytest.mark.parametrize("failing", ["factory", "capture", "lowering"])
def test_the_model_is_as_it_was_after_a_failure(x: torch.Tensor, failing: str) -> None:
    def factory(ctx: rewriter.RewriteContext, module: Gate) -> nn.Module:
        if failing == "factory":
            raise ValueError("no")
        model = net_of(lambda _, x: torch.linalg.eigvals(x[..., :4, :4]).real.sum() + x)
        return {"capture": Gate(4), "lowering": nn.Sequential(model)}[failing]

    net = nn.Sequential(Half(Gate(4)), Gate(4)).eval()
    before = facts(net)
    with pytest.raises(Exception, match=r"no|capture|eigvals"):
        ModelExport(net, (x,), rewriters=[rewriter.module(Gate)(factory)]).lower(TractNNEF(NEWEST))
    assert facts(net) == before


def test_a_class_a_partial_and_a_module_as_replacement(proven: Any, x: torch.Tensor) -> None:
    """mmdeploy's documented module rewriter cannot get arguments of its own."""
    net = nn.Sequential(Gate(4), nn.Linear(4, 4)).eval()
    proven(net, (x,), rewriter.module(Gate)(Plain))
    proven(net, (x,), rewriter.module(Gate)(functools.partial(Plain, bias=0.0)))
    relu = nn.Sequential(nn.ReLU(), nn.Linear(4, 4)).eval()
    proven(relu, (x,), rewriter.module(nn.ReLU)(nn.Hardtanh(0.0, 1e30)))


def test_the_whole_model_is_replaced(proven: Any, x: torch.Tensor) -> None:
    net = Gate(4).eval()
    result = proven(net, (x,), rewriter.module(Gate)(Plain))
    assert [o.arguments["label"] for o, _ in result.graph.variables()] == ["weight"]
    proven(net, {"x": x}, rewriter.module(Gate)(lambda ctx, module: Input(module)), dynamic_axes={"x": {1: "T"}})


def test_subclasses_go_by_the_nearest_base_unless_they_compute_something_else(proven: Any, x: torch.Tensor) -> None:
    seen: list[str] = []

    def noting(word: str) -> Any:
        def factory(ctx: rewriter.RewriteContext, module: Gate) -> nn.Module:
            seen.append(f"{word} {type(module).__name__}")
            return Plain(ctx, module)

        return factory

    net = nn.Sequential(Gate(4), OtherGate(4), OwnGate(4)).eval()
    proven(net, (x,), rewriter.module(Gate)(noting("base")))
    assert sorted(seen) == ["base Gate", "base OtherGate"]
    seen.clear()
    proven(net, (x,), rewriter.module(Gate)(noting("base")), rewriter.module(OtherGate)(noting("other")))
    assert sorted(seen) == ["base Gate", "other OtherGate"]


def test_where_chooses_instances(proven: Any, x: torch.Tensor) -> None:
    net = nn.Sequential(Gate(4), nn.ReLU()).eval()
    never = rewriter.module(Gate, where=lambda module: module.weight.numel() > 4)(Plain)
    with pytest.raises(CaptureError):
        proven(net, (x,), never)


def test_children_are_replaced_before_their_parents(proven: Any, x: torch.Tensor) -> None:
    @rewriter.module(Half)
    def without_half(ctx: rewriter.RewriteContext, module: Half) -> nn.Module:
        assert isinstance(module.gate, Plain)
        return module.gate

    proven(nn.Sequential(Half(Gate(4))).eval(), (x,), rewriter.module(Gate)(Plain), without_half)


def test_replacements_take_the_training_flag(proven: Any, x: torch.Tensor) -> None:
    @rewriter.module(nn.Tanh)
    def with_dropout(ctx: rewriter.RewriteContext, module: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Tanh(), nn.Dropout(0.5))  # as built: in training mode

    proven(nn.Sequential(nn.Linear(4, 3), nn.Tanh()).eval(), (x,), with_dropout)


def test_what_is_no_module_is_refused(x: torch.Tensor) -> None:
    with pytest.raises(RewriteError, match=r"test_modules\.py:\d+.*is a int"):
        _ = ModelExport(Gate(4), (x,), rewriters=[rewriter.module(Gate)(lambda ctx, module: 3)]).captured
    with pytest.raises(RewriteError, match="class of modules"):
        _ = ModelExport(Gate(4), (x,), rewriters=[rewriter.module(dict)(lambda ctx, module: module)]).captured


def test_a_replacement_that_computes_something_else_is_found_out(x: torch.Tensor, tmp_path: Path) -> None:
    from t2n_core.errors import ParityError

    wrong = rewriter.module(nn.ReLU)(nn.Tanh())
    export = ModelExport(nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval(), (x,), rewriters=[wrong])
    with pytest.raises(ParityError):
        export.to(TractNNEF(NEWEST), tmp_path / "m.tar").assert_parity("approximate")
