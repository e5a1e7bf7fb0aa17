"""Rows that a mask selects, `y[mask]`, which a model computes with and writes back, `y[mask] = f(y[mask])`.

How many there are depends on data. While a model is captured all rows stand for them, and what is written back is a
choice by the mask. Only functions that work row by row may read them, and sums and means over them; any other function
is refused, since it would see rows that are not selected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import torch

from t2n_core.errors import DataDependentError
from t2n_core.torch_graph.compat.private import WeakIdKeyDictionary, pytree, statically_known_true

_ELEMENTWISE: Final = frozenset(
    """abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sigmoid tanh relu gelu silu softplus sin
    cos tan atan erf round floor ceil trunc sign clamp clip clamp_min clamp_max add radd iadd sub rsub isub mul rmul
    imul div truediv rtruediv itruediv true_divide pow rpow ipow maximum minimum where lerp to float double half type
    clone detach contiguous gt lt ge le eq ne logical_and logical_or logical_not and or invert""".split()
)
_ALONG_AXES: Final = frozenset("softmax log_softmax flip sum mean amax amin unsqueeze".split())
"""Functions along axes, which are the second argument or `dim`."""
_ALONG_THE_LAST: Final = frozenset({"linear", "layer_norm", "matmul"})
"""Functions of rows, which are the first argument, and of weights."""
_PROPERTIES: Final = frozenset("dtype device layout ndim requires_grad is_cuda is_cpu is_sparse is_mps is_meta".split())
_QUESTIONS: Final = frozenset("dim ndimension is_floating_point is_complex".split())
_CONDITIONS: Final = frozenset(
    "gt lt ge le eq ne isnan isinf isfinite logical_not logical_and logical_or and or invert".split()
)
_WRITING: Final = frozenset("setitem iadd isub imul itruediv ifloordiv imod iand ior".split())


@dataclass(frozen=True, slots=True)
class _Index:
    """An index that begins with a mask."""

    mask: torch.Tensor
    rest: tuple[Any, ...]
    """Integers and slices."""

    def part_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the part of a tensor from which the mask selects, a view."""
        return tensor[(slice(None),) * self.mask.dim() + self.rest] if self.rest else tensor


class MaskedRows:
    """Follows the rows that masks select in one capture."""

    def __init__(self) -> None:
        self._masks: Any = WeakIdKeyDictionary()
        """Rows -> their mask."""
        self._formulas_of_rows: Any = WeakIdKeyDictionary()
        """Rows -> the formula of their mask when it selected them."""
        self._formulas: Any = WeakIdKeyDictionary()
        """Mask -> what it was computed by; two masks with the same formula are equal."""
        self._positions: Any = WeakIdKeyDictionary()
        """The positions of the elements that a mask selects -> that mask."""
        self._numbers: Any = WeakIdKeyDictionary()
        self._writes = self._bool_writes = 0
        """Counts of writes to tensors, and to boolean tensors."""
        self.has_any = False
        """True once there were such rows; it is read at every call."""

    def call(self, func: Callable[..., Any], name: str, args: Any, kwargs: Any, plain: Callable[[Any], Any]) -> Any:
        """Return the result of a call; `plain`, a function of the arguments, computes calls that read no such rows.

        Raises DataDependentError for a function that is not row by row.
        """
        kind = name.strip("_")
        if name in ("__getitem__", "__setitem__") and self.has_any:
            args = (args[0], self._as_mask(args[1]), *args[2:])
        if self.has_any and self._rows_in((args, kwargs)):
            return self._of_rows(func, name, kind, args, kwargs)
        if name == "__getitem__" and (index := _read_index(args[0], args[1])) is not None:
            return self._selected(args[0], index)
        if kind == "masked_select" and _have_one_shape(args[0], args[1]):
            return self._selected(args[0], _Index(args[1], ()))
        if (mask := _mask_of_positions(kind, args, kwargs)) is not None:
            return (self._positions_of(mask),)
        result = plain(args)
        if kind in _CONDITIONS and isinstance(result, torch.Tensor):
            self._formulas[result] = self._formula(kind, args, kwargs)
        if kind in _WRITING or "out" in kwargs or any(argument is result for argument in args if argument is not None):
            self._writes += 1
            if isinstance(args[0], torch.Tensor) and args[0].dtype == torch.bool:
                self._bool_writes += 1  # it may be a mask, or a view of one
                self._formulas.clear()
        return result

    def _positions_of(self, mask: torch.Tensor) -> torch.Tensor:
        positions = self._follow(torch.arange(mask.shape[0]), mask)
        self._positions[positions] = mask
        return positions

    def _as_mask(self, index: Any) -> Any:
        """Return an index in which masks replace the positions that they select."""
        items = index if isinstance(index, tuple) else (index,)
        masks = [self._positions.get(item, item) if isinstance(item, torch.Tensor) else item for item in items]
        return tuple(masks) if isinstance(index, tuple) else masks[0]

    def _rows_in(self, values: Any) -> list[torch.Tensor]:
        return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf in self._masks]

    def _selected(self, tensor: torch.Tensor, index: _Index) -> torch.Tensor:
        part = index.part_of(tensor)
        return self._follow(part.flatten(0, index.mask.dim() - 1).clone(), index.mask)

    def _follow(self, rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self._masks[rows], self._formulas_of_rows[rows] = mask, self._number(mask)
        self.has_any = True
        return rows

    def _of_rows(self, func: Callable[..., Any], name: str, kind: str, args: Any, kwargs: Any) -> Any:
        property_name = getattr(getattr(func, "__self__", None), "__name__", "") if name == "__get__" else ""
        if kind in _QUESTIONS or property_name in _PROPERTIES:
            return func(*args, **kwargs)
        rows = self._rows_in((args, kwargs))
        mask, formula = self._masks[rows[0]], self._formulas_of_rows[rows[0]]
        if any(
            self._formulas_of_rows[tensor] != formula or self._number(self._masks[tensor]) != formula for tensor in rows
        ):
            _refuse(f"`{kind}` by another mask, or one that has changed,")
        if name == "__setitem__" and args[0] not in self._masks:
            return self._write(formula, *args)
        if kind == "masked_scatter" and _have_one_shape(*args[:2]) and self._number(args[1]) == formula:
            return torch.where(mask, rows[0].reshape(mask.shape).to(args[0].dtype), args[0])
        if kind in ("sum", "mean") and _reduces_rows(args, kwargs):
            return _reduced(kind, rows[0], mask, args[1:], kwargs)
        if not self._is_row_by_row(kind, rows[0].dim(), args, kwargs):
            _refuse(f"`{property_name or kind}`")
        return self._follow(func(*args, **kwargs), mask)

    def _is_row_by_row(self, kind: str, rank: int, args: Any, kwargs: Any) -> bool:
        """Return whether the result for a row depends only on that row."""
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        others = [tensor for tensor in tensors if tensor not in self._masks]
        if kind == "getitem":
            items = args[1] if isinstance(args[1], tuple) else (args[1],)
            return not others and items[0] == slice(None) and all(isinstance(item, int | slice) for item in items)
        if "out" in kwargs:
            return False
        if kind in _ALONG_THE_LAST:
            return args[0] in self._masks and rank > 1 and len(tensors) == len(others) + 1
        if kind in _ALONG_AXES:
            axes = _axes(args, kwargs)
            return not others and axes is not None and all(axis > 0 or -rank < axis < 0 for axis in axes)
        if kind == "where" and len(args) < 3:
            return False  # places of elements
        return kind in _ELEMENTWISE and all(other.dim() < rank for other in others)

    def _write(self, formula: Any, tensor: torch.Tensor, index: Any, rows: torch.Tensor) -> None:
        """Write rows back to the tensor, or to another of its shape, by the mask of this formula."""
        mask_index = _read_index(tensor, index)
        if mask_index is None or self._number(mask_index.mask) != formula:
            _refuse("a write by another mask, or one that has changed,")
        part, mask = mask_index.part_of(tensor), mask_index.mask
        inner = part.dim() - mask.dim()
        if rows.dim() - 1 > inner:
            _refuse("a write with more axes")
        values = rows.reshape(*mask.shape, *[1] * (inner - rows.dim() + 1), *rows.shape[1:])
        self._writes += 1
        part.copy_(torch.where(mask.reshape(*mask.shape, *[1] * inner), values.to(part.dtype), part))

    def _formula(self, kind: str, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
        """Return what a condition is computed by; None if it has other arguments than tensors and numbers."""
        if kwargs or not all(isinstance(argument, torch.Tensor | int | float) for argument in args):
            return None
        numbers = (self._number(argument) if isinstance(argument, torch.Tensor) else argument for argument in args)
        return (kind, self._writes, *numbers)

    def _number(self, tensor: torch.Tensor) -> Any:
        """Return the formula of a mask; without one a number of the tensor, and of writes if it may be a mask."""
        formula = self._formulas.get(tensor)
        if formula is not None:
            return formula
        number = self._numbers.setdefault(tensor, len(self._numbers))
        return ("tensor", number, self._bool_writes if tensor.dtype == torch.bool else 0)


def _read_index(tensor: Any, index: Any) -> _Index | None:
    """Return an index that begins with a mask of one or more axes, and has integers and slices after it."""
    mask, *rest = index if isinstance(index, tuple) and index else (index,)
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or mask.dim() == 0:
        return None
    plain = all(isinstance(item, int | slice) and not isinstance(item, bool) for item in rest)
    return _Index(mask, tuple(rest)) if plain and isinstance(tensor, torch.Tensor) else None


def _mask_of_positions(kind: str, args: Any, kwargs: Any) -> torch.Tensor | None:
    """Return the mask of `torch.where(mask)` and `mask.nonzero(as_tuple=True)`, if it has one axis."""
    as_tuple = kwargs.get("as_tuple", False) if kind == "nonzero" else kind == "where" and not kwargs
    mask = args[0] if len(args) == 1 and as_tuple else None
    return mask if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and mask.dim() == 1 else None


def _have_one_shape(tensor: torch.Tensor, mask: torch.Tensor) -> bool:
    pairs = zip(tensor.shape, mask.shape, strict=False)
    return tensor.dim() == mask.dim() and all(statically_known_true(size == other) for size, other in pairs)


def _axes(args: Any, kwargs: Any) -> tuple[int, ...] | None:
    """Return the axes of a call, None for all of them."""
    axes = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("dims"))
    return (axes,) if isinstance(axes, int) else None if axes is None else tuple(axes)


def _reduces_rows(args: Any, kwargs: Any) -> bool:
    axes = _axes(args, kwargs)
    return axes is None or 0 in axes or -args[0].dim() in axes


def _reduced(kind: str, rows: torch.Tensor, mask: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
    """Return a sum or a mean over the selected rows."""
    selected = mask.flatten().reshape(-1, *[1] * (rows.dim() - 1))
    total: torch.Tensor = torch.where(selected, rows, torch.zeros((), dtype=rows.dtype)).sum(*args, **kwargs)
    if kind == "sum":
        return total
    counts: torch.Tensor = selected.expand(rows.shape).sum(*args, **kwargs)
    return total / counts.to(total.dtype)


def _refuse(operation: str) -> NoReturn:
    raise DataDependentError(
        f"a size of this model depends on its data: {operation} of rows that a mask selects",
        hint="instead of x[mask] keep all elements and select: torch.where(mask, x, 0)",
    )
