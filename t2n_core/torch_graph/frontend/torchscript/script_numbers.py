"""Evaluate TorchScript's operators on numbers, lists and strings in Python, so that sizes stay symbolic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.overrides.memory_layouts import has_format

_torch: Any = torch


_DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
    torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8, torch.quint8, torch.qint32,
    torch.bfloat16,
)  # fmt: skip
"""Dtypes in the order of c10::ScalarType, whose integers TorchScript uses for dtypes."""
_MEMORY_FORMATS = (
    torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d,
)  # fmt: skip
"""Memory formats in the order of c10::MemoryFormat."""
_INTEGERS: dict[Any, int] = {**{dtype: index for index, dtype in enumerate(_DTYPES)}, torch.strided: 0}


def as_integer(value: Any) -> Any:
    """Return TorchScript's integer for a dtype or a layout; anything else as it is.

    Raises CaptureError for a dtype or layout that no engine supports.
    """
    if not isinstance(value, torch.dtype | torch.layout):
        return value
    if value not in _INTEGERS:
        raise CaptureError(f"the script reads {value}, which archives do not support")
    return _INTEGERS[value]


def _add(a: Any, b: Any, alpha: Any = 1) -> Any:
    return a + (b if alpha == 1 else alpha * b)


def _subtract(a: Any, b: Any, alpha: Any = 1) -> Any:
    return a - (b if alpha == 1 else alpha * b)


def _divide(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return a / b
    if rounding_mode == "floor":
        return a // b
    return _torch.sym_int(a / b) if isinstance(a, torch.SymInt) else int(a / b)


def _convert(number: Any, dtype: Any, *_: Any) -> Any:
    if not isinstance(dtype, int):
        return number  # to another device
    if dtype == as_integer(torch.bool):
        return bool(number)
    return _real(number) if _DTYPES[dtype].is_floating_point else _to_int(number)


def tensor_of(data: Any, dtype: Any = None, *_: Any) -> torch.Tensor:
    """Return a tensor of a number or of nested lists of numbers; the operator itself cannot be called from Python."""
    return torch.tensor(data, dtype=_DTYPES[dtype] if isinstance(dtype, int) else dtype)


def _slice(items: Any, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return items[start:end:step]


def _to_int(number: Any) -> Any:
    return _torch.sym_int(number) if isinstance(number, torch.SymFloat) else number if _is_size(number) else int(number)


def _real(number: Any) -> Any:
    return _torch.sym_float(number) if isinstance(number, torch.SymInt | torch.SymFloat) else float(number)


def _is_size(number: Any) -> bool:
    return isinstance(number, torch.SymInt)


def _append(items: list[Any], item: Any) -> list[Any]:
    items.append(item)
    return items


def _set_item(items: Any, key: Any, item: Any) -> Any:
    items[key] = item
    return items


CALCULATE: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _subtract, "rsub": lambda a, b, alpha=1: _subtract(b, a, alpha), "mul": operator.mul,
    "div": _divide, "true_divide": operator.truediv, "floordiv": operator.floordiv, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "neg": operator.neg, "pow": operator.pow, "abs": abs,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__not__": operator.not_, "__xor__": operator.xor,
    "__is__": lambda a, b: a is b, "__isnot__": lambda a, b: a is not b, "__contains__": operator.contains,
    "logical_and": lambda a, b: bool(a) and bool(b), "logical_or": lambda a, b: bool(a) or bool(b),
    "to": _convert, "Int": _to_int, "IntImplicit": _to_int, "Float": _real, "FloatImplicit": _real, "Bool": bool,
    "ScalarImplicit": lambda n: n, "floor": lambda n: _to_int(_torch.sym_int(n)) if _is_size(n) else math.floor(n),
    "ceil": math.ceil, "round": round, "sqrt": math.sqrt, "log": math.log, "exp": math.exp,
    "len": len, "__getitem__": lambda items, key: items[key], "append": _append, "_set_item": _set_item,
    "slice": _slice, "list": list, "copy": lambda items: items.copy(), "keys": lambda d: list(d.keys()),
    "values": lambda d: list(d.values()), "items": lambda d: list(d.items()), "get": lambda d, *a: d.get(*a),
    "extend": lambda a, b: a.extend(b), "insert": lambda a, i, x: a.insert(i, x), "pop": lambda a, *i: a.pop(*i),
    "reverse": lambda a: a.reverse(), "clear": lambda a: a.clear(),
    "__range_length": lambda low, high, step: len(range(low, high, step)),
    "__derive_index": lambda index, start, step: start + index * step,
    "format": lambda text, *values: text.format(*values), "str": str, "lower": lambda s: s.lower(),
    "upper": lambda s: s.upper(), "startswith": lambda s, *a: s.startswith(*a), "index": lambda a, x: a.index(x),
    "warn": lambda *_: None, "dict": lambda *a: dict(*a), "percentFormat": lambda text, *v: text % v,
    "min": lambda *a: _torch.sym_min(*a) if len(a) == 2 else min(*a),
    "max": lambda *a: _torch.sym_max(*a) if len(a) == 2 else max(*a), "device": torch.device,
    "type": lambda device: device.type,
}  # fmt: skip
"""`aten::` operators whose arguments hold no tensor, and operators of lists, which may."""

OF_TENSORS: dict[str, Callable[..., Any]] = {
    "aten::size": lambda t, axis=None: list(t.shape) if axis is None else t.shape[axis],
    "aten::sym_size": lambda t, axis=None: list(t.shape) if axis is None else t.shape[axis],
    "aten::dim": lambda t: t.dim(),
    "aten::numel": lambda t: t.numel(),
    "aten::len": len,
    "aten::is_contiguous": lambda t, memory_format=0: has_format(t, _MEMORY_FORMATS[memory_format]),
    "aten::is_floating_point": lambda t: t.is_floating_point(),
    "aten::is_complex": lambda t: t.is_complex(),
    "aten::stride": lambda t, axis=None: t.stride() if axis is None else t.stride(axis),
    "aten::Int": int, "aten::Float": float, "aten::Bool": bool, "aten::item": lambda t: t.item(),
    "aten::ScalarImplicit": lambda t: t.item(), "aten::IntImplicit": int, "aten::FloatImplicit": float,
    "aten::__is__": lambda a, b: a is b, "aten::__isnot__": lambda a, b: a is not b,
    "aten::requires_grad_": lambda t, *_: t,
    "prim::dtype": lambda t: t.dtype,
    "prim::device": lambda t: t.device,
    "prim::layout": lambda t: t.layout,
    "prim::shape": lambda t: list(t.shape),
    "prim::is_cuda": lambda t: t.is_cuda,
    "prim::requires_grad": lambda t: False,
    "prim::is_nested": lambda t: False,
    "prim::tolist": lambda t, *_: t.tolist(),
    "prim::data": lambda t: t.detach(),
}  # fmt: skip
"""Properties of a tensor that are not tensors."""
