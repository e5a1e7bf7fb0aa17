"""Operators that act alike on both parts: views, selections, concatenations, sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.compat.operators import functional_overloads
from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.simplify.complex_pairs import Operand, Pair, as_pair, on_pairs
from t2n_core.torch_graph.simplify.decompositions import Refusal

_ONE_TENSOR = """
    chunk clone contiguous cumsum diagonal diff expand flatten flip gather index index_select mean movedim narrow neg
    permute repeat reshape roll select slice split split_with_sizes squeeze sum t tensor_split tile transpose tril triu
    unbind unflatten unfold unsqueeze view zeros_like empty_like
"""
_SEVERAL_TENSORS = "cat concat hstack vstack dstack stack where select_scatter slice_scatter index_put"
_OPERANDS = ("self", "tensors", "other", "src", "values")
"""Arguments of these operators that are values; the others are conditions and indices."""


def _on_one(target: OpOverload) -> Callable[..., Any]:
    def both(*positional: Any, **keywords: Any) -> Any:
        dtype = keywords.pop("dtype", None)  # the result gets it
        if dtype is not None and not dtype.is_complex:
            raise Refusal(f"{target} to a real dtype drops the imaginary part")
        first = target(*_parts(positional, "re"), **_parts(keywords, "re"))
        second = target(*_parts(positional, "im"), **_parts(keywords, "im"))
        if isinstance(first, Tensor):
            return Pair(first, second)
        return tuple(Pair(a, b) for a, b in zip(first, second, strict=True))

    return both


def _on_several(target: OpOverload) -> Callable[..., Any]:
    names = [argument.name for argument in target._schema.arguments]

    def both(*positional: Any, **keywords: Any) -> Any:
        values = {**dict(zip(names, positional, strict=False)), **keywords}
        for name in _OPERANDS:
            if name in values:
                values[name] = _all_pairs(values[name])
        results = []
        for part in ("re", "im"):
            parts = _parts(values, part)
            in_place = [parts.pop(name) for name in names[: len(positional)]]
            results.append(target(*in_place, **parts))
        return Pair(*results)

    return both


def _all_pairs(value: Any) -> Any:
    return [as_pair(item) for item in value] if isinstance(value, list | tuple) else as_pair(value)


def _parts(value: Any, part: str) -> Any:
    if isinstance(value, Pair):
        return getattr(value, part)
    if isinstance(value, dict):
        return {k: _parts(v, part) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_parts(item, part) for item in value)
    return value


for _names, _make in ((_ONE_TENSOR, _on_one), (_SEVERAL_TENSORS, _on_several)):
    for _name in _names.split():
        for _overload in functional_overloads(f"aten::{_name}"):
            on_pairs(f"aten::{_name}.{_overload._overloadname}")(_make(_overload))


@on_pairs("aten::constant_pad_nd")
def constant_pad_nd(self: Pair, pad: Sequence[Any], value: complex = 0) -> Pair:
    filled = as_pair(value)
    return Pair(torch.constant_pad_nd(self.re, pad, filled.re), torch.constant_pad_nd(self.im, pad, filled.im))


@on_pairs("aten::masked_fill")
def masked_fill(self: Operand, mask: Tensor, value: Operand) -> Pair:
    source, filled = as_pair(self), as_pair(value)
    return Pair(source.re.masked_fill(mask, filled.re), source.im.masked_fill(mask, filled.im))


@on_pairs("aten::ones_like")
def ones_like(self: Pair, **_: Any) -> Pair:
    return Pair(torch.ones_like(self.re), torch.zeros_like(self.im))


@on_pairs("aten::zeros", "aten::empty.memory_format")
def zeros(size: Sequence[Any], *, dtype: torch.dtype, **_: Any) -> Pair:
    return full(size, 0, dtype=dtype)


@on_pairs("aten::ones")
def ones(size: Sequence[Any], *, dtype: torch.dtype, **_: Any) -> Pair:
    return full(size, 1, dtype=dtype)


@on_pairs("aten::full")
def full(size: Sequence[Any], fill_value: complex, *, dtype: torch.dtype | None = None, **_: Any) -> Pair:
    filled, real = as_pair(fill_value), (dtype or torch.get_default_dtype()).to_real()
    return Pair(torch.full(size, filled.re, dtype=real), torch.full(size, filled.im, dtype=real))


@on_pairs("aten::new_zeros")
def new_zeros(self: Pair | Tensor, size: Sequence[Any], *, dtype: torch.dtype | None = None, **_: Any) -> Pair:
    real = self.re.dtype if isinstance(self, Pair) else self.dtype
    return full(size, 0, dtype=dtype or real.to_complex())


@on_pairs("aten::copy")
def copy(self: Operand, src: Operand, non_blocking: bool = False) -> Pair:
    shape, source = self.re if isinstance(self, Pair) else self, as_pair(src)
    return Pair(source.re.expand_as(shape), source.im.expand_as(shape))


@on_pairs("aten::full_like")
def full_like(self: Pair | Tensor, fill_value: complex, **_: Any) -> Pair:
    shape, filled = self.re if isinstance(self, Pair) else self, as_pair(fill_value)
    return Pair(torch.full_like(shape, filled.re), torch.full_like(shape, filled.im))


@on_pairs("aten::to.dtype", "aten::_to_copy", "aten::to.dtype_layout", "aten::to.other")
def to(self: Operand, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Pair:
    """Convert a complex or real tensor to a complex dtype: the parts are converted when the result is built."""
    return as_pair(self)


@on_pairs("aten::resolve_conj")
def resolve(self: Operand) -> Operand:
    return self
