"""Operators that return one of their arguments unchanged at the sizes and constants of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from t2n_core.nnef.sizes.dims import Shape

COPIES: Final = frozenset({"_to_copy", "to", "clone", "contiguous", "alias", "detach", "lift_fresh_copy"})
"""Operators that return all elements of their argument in its shape, possibly in another dtype."""
_WITHOUT_EFFECT: Final = frozenset(
    COPIES
    | {"detach_", "type_as"}
    | {"expand", "expand_as", "broadcast_to", "repeat", "slice", "narrow"}
    | {"view", "view_as", "reshape", "reshape_as", "_unsafe_view", "flatten", "unflatten", "squeeze"}
)
"""Operators that return all elements in order if the shape stays the same."""
_RESHAPES: Final = frozenset(
    {"view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "unsqueeze", "squeeze"}
)
_ALONG: Final = frozenset({"flip", "cumsum", "cumprod"})
"""Operators that return their argument if the axes that they work along have size 1."""
_OVER_ONE: Final = frozenset({"select", "mean", "sum", "amax", "amin"})
"""Operators that remove an axis, and keep all elements if its size is 1."""
_DROPOUTS: Final = frozenset({"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})
_NEUTRAL: Final = {"add": 0, "sub": 0, "mul": 1, "div": 1, "logical_and": 1, "bitwise_and": -1, "__and__": -1}
"""Neutral constants as a second argument; -1 has all bits set."""
_COMMUTE: Final = frozenset({"add", "mul", "logical_and", "bitwise_and", "__and__"})


def identity(kind: str, bound: Mapping[str, Any], shape: Shape, dtype: torch.dtype) -> Any:
    """Return the argument that a call returns unchanged in this shape and dtype; None if it computes something."""
    name = kind.removeprefix("aten::").partition(".")[0]
    source = bound.get("self", bound.get("input"))
    if name in _DROPOUTS:
        return source if not bound["train"] or bound["p"] == 0 else None
    if name in _ALONG and all(shape[axis] == 1 for axis in _axes(bound, len(shape))):
        return source if source.dtype == dtype else None
    for candidate in _candidates(name, bound, source):
        if getattr(candidate, "shape", None) == shape and candidate.dtype == dtype:
            return candidate
    return None


def is_reshape(kind: str, bound: Mapping[str, Any], shape: Shape) -> bool:
    """Return whether a call returns all elements of its argument in order, in another shape."""
    name = kind.removeprefix("aten::").partition(".")[0]
    source: Any = bound.get("self")
    if getattr(source, "shape", None) is None:
        return False
    if name in _RESHAPES:
        return True
    if name in _OVER_ONE and "dim" in bound:
        return all(source.shape[axis] == 1 for axis in _axes(bound, len(source.shape)))
    if name in ("transpose", "permute"):
        order = list(range(len(shape)))
        if name == "permute":
            order = [int(axis) % len(shape) for axis in bound["dims"]]
        elif shape:
            a, b = int(bound["dim0"]) % len(shape), int(bound["dim1"]) % len(shape)
            order[a], order[b] = order[b], order[a]
        long = [axis for axis in order if source.shape[axis] != 1]
        return long == sorted(long)
    return False


def _axes(bound: Mapping[str, Any], rank: int) -> list[int]:
    """Return the axes of a call, counted from 0: all if it names none; an empty list for a tensor of rank 0."""
    axes = bound.get("dim", bound.get("dims"))
    if axes is None or (axes == [] and "dim" in bound):
        return list(range(rank))
    return [int(axis) % rank for axis in (axes if isinstance(axes, list) else [axes])] if rank else []


def _candidates(name: str, bound: Mapping[str, Any], source: Any) -> list[Any]:
    if name in _WITHOUT_EFFECT:
        return [source]
    if name == "slice_scatter":  # a source of the full shape replaces all elements
        return [bound["src"]]
    other = bound.get("other")
    if name == "where" and "condition" in bound:
        chosen = _element(bound["condition"])
        return [] if chosen is None else [source if chosen else other]
    if name == "masked_fill":
        return [source] if _element(bound["mask"]) is False else []
    if name in _NEUTRAL and bound.get("rounding_mode") is None:
        pairs = (
            [(source, other), (other, source)] if name in _COMMUTE and bound.get("alpha", 1) == 1 else [(source, other)]
        )
        return [operand for operand, by in pairs if _is_neutral(name, by)]
    if name == "permute":
        return [source] if list(bound["dims"]) == list(range(len(bound["dims"]))) else []
    return []


def _is_neutral(name: str, value: Any) -> bool:
    number = _element(value)
    if number is None:
        return False
    neutral = _NEUTRAL[name]
    if neutral == -1 or name == "logical_and":
        return number is True or (neutral == -1 and number == -1 and not isinstance(number, bool))
    return not isinstance(number, bool) and bool(number == neutral)


def _element(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else getattr(value, "element", None)


def simpler_arguments(kind: str, bound: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call in canonical form.

    Slices are without their end, which the shape determines, and attention is without a mask that masks nothing.
    """
    name = kind.removeprefix("aten::").partition(".")[0]
    simpler = dict(bound)
    if name == "slice":
        extent = simpler["self"].shape[simpler["dim"]]
        start = simpler["start"] or 0
        simpler["start"] = start + extent if isinstance(start, int) and start < 0 else start
        simpler["end"] = None
    if name == "scaled_dot_product_attention":
        mask = _element(simpler["attn_mask"])
        if mask is True or (mask == 0 and not isinstance(mask, bool)):
            simpler["attn_mask"] = None
        if simpler["is_causal"] and simpler["query"].shape[-2] == simpler["key"].shape[-2] == 1:
            simpler["is_causal"] = False
    return simpler
