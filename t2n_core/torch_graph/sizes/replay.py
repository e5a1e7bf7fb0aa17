"""Run a captured program at other sizes than it was captured at, to see if it computes what the model does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import Interpreter, Node

from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.stand_ins.recurrent import NAMESPACE, aten_twin

SizeAt: TypeAlias = Callable[[Any], int | None]
"""Returns the value of a captured size at the sizes that are tried; None if it is unknown."""


class _Replay(Interpreter):
    """Runs a program, whatever it asserts of its sizes. Raises ValueError where a shape is not the captured one."""

    def __init__(self, module: torch.fx.GraphModule, size_at: SizeAt | None) -> None:
        super().__init__(module)
        self._size_at = size_at

    def run_node(self, n: Node) -> Any:
        if n.op == "call_function" and not n.users:
            return None  # an assertion, or a piece that nobody reads and that need not be there
        result = super().run_node(n)
        known = n.meta.get("val")
        if isinstance(known, torch.Tensor) and isinstance(result, torch.Tensor) and not self._fits(known, result):
            raise ValueError(f"{n.name} has the shape {tuple(result.shape)}, captured with {tuple(known.shape)}")
        return result

    def _fits(self, known: torch.Tensor, result: torch.Tensor) -> bool:
        if known.dim() != result.dim() or self._size_at is None:
            return known.dim() == result.dim()
        wanted = map(self._size_at, known.shape)
        return all(size in (None, int(found)) for size, found in zip(wanted, result.shape, strict=True))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(target, OpOverload) and target.namespace == NAMESPACE:
            target = aten_twin(target)
        return super().call_function(target, args, kwargs)


def replay(
    program: torch.export.ExportedProgram, tensors: Sequence[torch.Tensor], size_at: SizeAt | None = None
) -> list[Any] | None:
    """Return what the program gives for these inputs; None if it cannot run on them, or with tensors of other shapes
    than captured only."""
    module: Any = program.module(check_guards=False)
    try:
        return list(_Replay(module, size_at).run(*(t.detach().clone() for t in tensors)))
    except Exception:
        return None


def agree(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two lists of results hold the same tensors, up to rounding."""
    if len(one) != len(other):
        return False
    return all(_same(a, b) for a, b in zip(one, other, strict=True))


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point and not a.dtype.is_complex:
        return torch.equal(a, b)
    scale = float(a.abs().nan_to_num(0, 0, 0).max()) if a.numel() else 0.0
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5 * scale, equal_nan=True)


__all__ = ["agree", "replay"]
