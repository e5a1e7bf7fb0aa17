"""Replace functions of PyTorch while a model is captured: recurrent calls and packing go to capture overrides.

Lengths of packed sequences that the model creates from Python data are constants, but fake tensors have no values. So
small integer tensors of that kind get real values beside capture, which are tracked through sorting and indexing.
Lengths that are an input have no values: see `trackers/packed_rows.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.assertions import Assertions
from t2n_core.torch_graph.capture.constants import Constants
from t2n_core.torch_graph.compat.private import OpOverload, WeakIdKeyDictionary, _disable_current_modes, pytree
from t2n_core.torch_graph.custom_ops.recurrent import NAMES
from t2n_core.torch_graph.overrides.registry import overrides
from t2n_core.torch_graph.trackers.masked_rows import MaskedRows
from t2n_core.torch_graph.trackers.packed_rows import PackedRows
from t2n_core.torch_graph.trackers.size_tensors import SizeTensors, may_make_sizes, scalar_value

_MAKERS = ("tensor", "as_tensor", "arange")
_FACTORIES = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "new_zeros", "new_ones", "new_full"})
"""Take sizes, also as tensors of rank 0, which would make their results' shapes depend on data."""
_LARGEST_REAL_VALUE = 1 << 16


class CaptureMode(TorchFunctionMode):
    """While active, recurrent calls and packing go to their capture overrides. One object per capture.

    `constants` lets the model's Python read the elements of its constants.
    """

    def __init__(self, constants: Constants | None = None) -> None:
        super().__init__()
        self._constants, self._overrides = constants, overrides()
        self._real_values: Any = WeakIdKeyDictionary()
        self._sizes = SizeTensors()
        self.assertions = Assertions()
        self._packed, self._masked = PackedRows(), MaskedRows()
        self._following = False
        """True once there was a tensor to track. Most models never create one, and this is read at every call."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Redirect a call. One mode does everything: each mode adds a frame to every traceback of torch.export."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        override = self._overrides.get(func)
        if override is None and name == "__get__" and self._is_idle:
            return func(*args, **kwargs)  # most calls: PyTorch itself reads attributes of its fake tensors
        if override is not None:
            func = override.replacement
            kwargs = {"dim" if name == "axis" else name: value for name, value in kwargs.items()}  # as PyTorch takes it
        if isinstance(func, OpOverload):
            namespace, _, name = func._schema.name.partition("::")
            if namespace != "aten":
                return func(*args, **kwargs)
        if name in NAMES:
            return self._recurrent(name, args, kwargs)
        if name == "_pack_padded_sequence":
            return self._pack(*args, **kwargs)
        if name == "_pad_packed_sequence":
            return self._pad(*args, **kwargs)
        if self._packed.has_any and self._packed.reads((args, kwargs)):
            return self._packed.call(func, name, args, kwargs)
        if self._constants is not None:
            return self._constants.call(func, name, args, kwargs, functools.partial(self._plain, func, name))
        return self._plain(func, name, args, kwargs)

    @property
    def _is_idle(self) -> bool:
        """Return whether no tensor is tracked."""
        has_rows = self._packed.has_any or self._masked.has_any
        return self._constants is None and not self._following and not has_rows

    def _plain(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the result of a call; rows that masks select are followed, and elements of tensors that are sizes."""
        return self._masked.call(
            func, name, args, kwargs, lambda new_args: self._with_tracking(func, name, new_args, kwargs)
        )

    def _with_tracking(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        if name == "__bool__" and (truth := self.assertions.truth()) is not None:
            return truth
        if name in ("_assert", "_assert_async") and isinstance(args[0], torch.Tensor):
            return self.assertions.leave_out()
        if func is scalar_value:
            return self._sizes.number(args[0])
        if may_make_sizes(name, args, kwargs):
            self._following = True
        if self._following:
            return self._with_sizes(func, name, args, kwargs)
        return func(*args, **kwargs)

    # ----------------------------------------------------------------------------------------------- custom operators
    def _recurrent(self, name: str, args: Any, kwargs: Any) -> Any:
        ops = torch.ops.t2n_capture
        # the fourth argument is `has_biases` of the padded variant, the weights of the packed one
        packed = "batch_sizes" in kwargs or (len(args) > 3 and not isinstance(args[3], bool))
        if name.endswith("_cell") or not packed:
            return getattr(ops, name)(*args, **kwargs)
        data, batch_sizes, *rest = args
        if batch_sizes in self._packed:
            return self._packed.net(getattr(ops, f"{name}_masked"), data, batch_sizes, rest, kwargs)
        return getattr(ops, f"{name}_data")(data, self._integers(batch_sizes), *rest, **kwargs)

    def _pack(self, input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
        if lengths not in self._real_values:
            return self._packed.pack(input, lengths, batch_first)
        numbers = self._integers(lengths)
        data = torch.ops.t2n_capture.pack(input, numbers, batch_first)
        sizes = [sum(length > step for length in numbers) for step in range(max(numbers))]
        return data, self._constant(sizes)

    def _pad(
        self, data: torch.Tensor, batch_sizes: torch.Tensor, batch_first: bool, padding_value: float, total: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if batch_sizes in self._packed:
            return self._packed.pad(data, batch_sizes, batch_first, padding_value, total)
        sizes = self._integers(batch_sizes)
        steps = total if total > 0 else len(sizes)
        padded = torch.ops.t2n_capture.pad(data, sizes, batch_first, float(padding_value), steps)
        return padded, self._constant([sum(size > row for size in sizes) for row in range(sizes[0])])

    # --------------------------------------------------------------------------------------------------- real values
    def _integers(self, tensor: torch.Tensor) -> list[int]:
        real = self._real_values.get(tensor)
        if real is None:
            raise CaptureError(
                "the lengths of a packed sequence are not known at export",
                hint="take the padded tensor and a tensor of lengths as inputs, and pack them in forward: those of a "
                "PackedSequence that is an input are not known",
            )
        with _disable_current_modes():
            return [int(n) for n in real.reshape(-1).tolist()]

    def _constant(self, numbers: Sequence[int]) -> torch.Tensor:
        tensor = torch.tensor(list(numbers), dtype=torch.int64)
        with _disable_current_modes():
            self._record_value(tensor, torch.tensor(list(numbers), dtype=torch.int64))
        return tensor

    def _record_value(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        self._real_values[fake], self._following = real, True

    def _with_sizes(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the result of a call, with tensors that hold sizes tracked, and replaced where a size is expected."""
        if name in ("item", "__int__", "__index__"):
            number = self._sizes.number(args[0])
            if isinstance(number, int) or (name == "item" and number is not None):
                return number
        if name == "__bool__" and (truth := self._sizes.truth(args[0])) is not None:
            return truth
        if name == "tolist" and (numbers := self._sizes.numbers(args[0])) is not None:
            return numbers
        plain = self._sizes.plain(name, args, kwargs)
        result = self._sizes.arange(*plain) if name == "arange" else None
        if result is None:
            result = self._follow(func, name, *plain)
        self._sizes.follow(func, name, *plain, result)
        return result

    def _follow(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        real_values = self._real_values
        if (not tensors and name not in _MAKERS) or not all(t in real_values for t in tensors):
            if tensors and (name.endswith("_") or name == "__setitem__"):
                real_values.pop(tensors[0], None)  # unknown values are written to it
            return func(*args, **kwargs)
        if name in _FACTORIES:
            start = 1 if name.startswith("new_") else 0  # `self` of a method
            sizes = (self._integers(a)[0] if isinstance(a, torch.Tensor) else a for a in args[start:])
            return func(*args[:start], *sizes, **kwargs)
        real_args, real_kwargs = pytree.tree_map_only(torch.Tensor, lambda t: real_values[t], (args, kwargs))
        if any(isinstance(leaf, torch.SymInt) for leaf in pytree.tree_leaves((args, kwargs))):
            return func(*args, **kwargs)
        with _disable_current_modes():
            real = func(*real_args, **real_kwargs)
        if isinstance(real, bool | int | list):  # `int(lengths[0])`, `lengths.tolist()`: a Python number
            return real
        result = func(*args, **kwargs)
        for fake, value in zip(pytree.tree_leaves(result), pytree.tree_leaves(real), strict=True):
            small = isinstance(value, torch.Tensor) and value.numel() <= _LARGEST_REAL_VALUE
            if small and not value.is_floating_point() and not value.is_complex():
                self._record_value(fake, value)
        return result
