"""Packed sequences whose lengths are an input of the model.

The number of rows of such a sequence is known only at run time, so its rows stay padded while a model is captured,
[T * B, ...] step by step, and a mask [T, B, 1] marks the rows that exist. Only recurrent nets, padding, and functions
that work row by row may read them; any other function is refused, since it would see rows that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.private import WeakIdKeyDictionary, pytree

_ELEMENT_BY_ELEMENT = frozenset({"embedding", "dropout", "relu", "gelu", "silu", "sigmoid", "tanh"})
_ROW_BY_ROW = _ELEMENT_BY_ELEMENT | {"linear"}
"""Functions whose result for a row depends only on that row, for rows with at least one axis."""
_QUESTIONS = frozenset({"dim", "ndimension", "is_floating_point", "is_complex"})
_PROPERTIES = frozenset({"dtype", "device", "layout", "ndim", "requires_grad", "is_cuda", "is_cpu", "is_sparse"})
"""Properties of a tensor that do not depend on the number of rows."""


_LONGEST = -1
"""Stands for the unknown number of steps of a packed sequence; smaller than every `total_length`."""


@dataclass(frozen=True, slots=True)
class _Packed:
    """The parts of one packed sequence."""

    lengths: torch.Tensor
    steps: Any
    batch: Any
    running: torch.Tensor
    """Mask [T, B, 1], true where a sequence has not ended."""


class PackedRows:
    """Follows the packed sequences of one capture whose lengths are an input."""

    def __init__(self) -> None:
        self._of_rows: Any = WeakIdKeyDictionary()
        self._of_sizes: Any = WeakIdKeyDictionary()
        self.has_any = False
        """True once there was such a sequence; it is read at every call."""

    def __contains__(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is the batch sizes of such a sequence."""
        return tensor in self._of_sizes

    def reads(self, args: Any) -> bool:
        """Return whether the rows or the batch sizes of such a sequence are among arguments."""
        tensors = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
        return any(t in self._of_rows or t in self._of_sizes for t in tensors)

    def pack(self, input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows [T * B, ...] of an input [T, B, ...] or [B, T, ...], and a placeholder of the batch sizes."""
        sequence = input.transpose(0, 1) if batch_first else input
        steps, batch = sequence.shape[:2]
        running = (torch.arange(steps)[:, None] < lengths[None, :])[:, :, None]
        packed = _Packed(lengths, steps, batch, running)
        sizes = torch.zeros(1, dtype=torch.int64)
        self._of_sizes[sizes] = packed
        return self._rows(sequence, packed), sizes

    def pad(
        self, data: torch.Tensor, sizes: torch.Tensor, batch_first: bool, value: float, total: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return [total, B, ...] or [B, total, ...] with `value` after each sequence, and the lengths.

        Raises CaptureError without a `total_length`, since the size of the result would depend on data.
        """
        packed = self._of_sizes[sizes]
        if isinstance(total, int) and total == _LONGEST:
            raise CaptureError(
                "the longest of the lengths is the size of an output, and lengths are known at run time only",
                hint="pad_packed_sequence(…, total_length=x.shape[1]), or the axis of time of your input",
            )
        if total < packed.steps:
            raise CaptureError(f"total_length={total} is less than the {packed.steps} steps of the padded input")
        sequence = data.reshape(packed.steps, packed.batch, *data.shape[1:])
        mask = packed.running.reshape(packed.steps, packed.batch, *[1] * (data.dim() - 1))
        padded = torch.where(mask, sequence, torch.full((), value, dtype=data.dtype))
        if total > packed.steps:
            padding = [0, 0] * (padded.dim() - 1) + [0, total - packed.steps]
            padded = torch.nn.functional.pad(padded, padding, value=value)
        return padded.transpose(0, 1) if batch_first else padded, packed.lengths

    def net(self, operator: Any, data: torch.Tensor, sizes: torch.Tensor, rest: Any, kwargs: Any) -> Any:
        """Call a recurrent operator with a mask; return its rows and its final states."""
        packed = self._of_sizes[sizes]
        sequence = data.reshape(packed.steps, packed.batch, data.shape[1])
        result, *states = operator(sequence, packed.running, *rest, **kwargs)
        return self._rows(result, packed), *states

    def call(self, func: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Any:
        """Return the result of a function of rows or batch sizes. Raises CaptureError if it is not row by row."""
        first = args[0] if args and isinstance(args[0], torch.Tensor) else torch.empty(0)
        property_name = getattr(getattr(func, "__self__", None), "__name__", "") if name == "__get__" else ""
        if name in _QUESTIONS or property_name in _PROPERTIES:
            return func(*args, **kwargs)
        if first in self._of_sizes:
            if name == "size":
                return _LONGEST
            if (name == "__getitem__" and args[1] == 0) or (name == "select" and tuple(args[1:]) == (0, 0)):
                return self._of_sizes[first].batch
        elif first in self._of_rows:
            if name == "size" and args[1:] == (-1,) and first.dim() > 1:
                return func(*args, **kwargs)
            functions = _ROW_BY_ROW if first.dim() > 1 else _ELEMENT_BY_ELEMENT
            if name in functions and not self.reads((args[1:], kwargs)):
                result = func(*args, **kwargs)
                self._of_rows[result] = self._of_rows[first]
                return result
        raise CaptureError(
            f"`{property_name or name}` of a packed sequence whose lengths are known at run time only",
            hint="compute it before packing, or after pad_packed_sequence",
        )

    def _rows(self, sequence: torch.Tensor, packed: _Packed) -> torch.Tensor:
        data = sequence.reshape(packed.steps * packed.batch, *sequence.shape[2:])
        self._of_rows[data], self.has_any = packed, True
        return data
