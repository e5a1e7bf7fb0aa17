"""Run a captured program at other sizes than its capture's, and compare it with the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Interpreter, Node

from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.custom_ops.definition import aten_equivalent


class _Replay(Interpreter):
    """Runs a program without its assertions on sizes.

    Raises ValueError if a rank or a static size differs from the capture's, or, with the tensors of the capture, any
    size.
    """

    def __init__(self, module: torch.fx.GraphModule, as_captured: bool) -> None:
        super().__init__(module)
        self._as_captured = as_captured

    def run_node(self, n: Node) -> Any:
        if n.op == "call_function" and not n.users:
            return None  # an assertion, or an unused piece that may not exist
        result = super().run_node(n)
        fake = n.meta.get("val")
        if isinstance(fake, torch.Tensor) and isinstance(result, torch.Tensor) and not self._fits(fake, result):
            raise ValueError(f"{n.name} has the shape {tuple(result.shape)}, captured with {tuple(fake.shape)}")
        return result

    def _fits(self, fake: torch.Tensor, result: torch.Tensor) -> bool:
        sizes = map(self._size, fake.shape)
        return fake.dim() == result.dim() and all(
            size in (None, extent) for size, extent in zip(sizes, result.shape, strict=True)
        )

    def _size(self, size: Any) -> int | None:
        """Return a static size, or the captured size of a dynamic one; None if it may differ."""
        if isinstance(size, int):
            return size
        return int(size.node.hint) if self._as_captured and size.node.has_hint() else None

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(target, OpOverload):
            target = aten_equivalent(target)
        return super().call_function(target, args, kwargs)


def replay(
    program: torch.export.ExportedProgram, tensors: Sequence[torch.Tensor], as_captured: bool = False
) -> list[Any] | None:
    """Return the results of the program for these inputs.

    Return None if it cannot run on them, or only with other ranks than captured.

    Args:
        as_captured: whether the inputs have the sizes of the capture; then all sizes are compared.
    """
    module: Any = program.module(check_guards=False)
    try:
        return list(_Replay(module, as_captured).run(*(t.detach().clone() for t in tensors)))
    except Exception:
        return None


def agree(values: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two lists of results hold the same tensors, up to rounding."""
    if len(values) != len(other):
        return False
    return all(_same(a, b) for a, b in zip(values, other, strict=True))


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point and not a.dtype.is_complex:
        return torch.equal(a, b)
    scale = float(a.abs().nan_to_num(0, 0, 0).max()) if a.numel() else 0.0
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5 * scale, equal_nan=True)


def computes_alike(
    program: torch.export.ExportedProgram,
    call: torch.nn.Module,
    tensors: Sequence[torch.Tensor],
    as_captured: bool = False,
) -> bool:
    """Return whether a captured program agrees with the model on these tensors, or the model fails on them."""
    try:
        with torch.no_grad():
            expected = call(*(t.detach().clone() for t in tensors))
    except Exception:
        return True
    replayed = replay(program, tensors, as_captured)
    return replayed is not None and agree(list(expected), replayed)
