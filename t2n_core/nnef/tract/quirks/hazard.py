"""A hazard: a kind of operation that must not be written for some releases, and the conditions that recognise it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from t2n_core.nnef.graph import Value, values_in
from t2n_core.nnef.tract.quirks.quirk import Erratum, OperationView, Predicate, releases_of


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate on one operation, with the defaults of its signature filled in."""

    text: str
    """The end of a sentence that begins with `if`."""
    holds: Predicate
    argument: str = ""
    """The argument that is read; empty if it is more than one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard(Erratum):
    """One kind of operation that has no repair: an operation for which all conditions hold is refused."""

    conditions: tuple[Condition, ...]


def hazard(
    operators: str, *releases: tuple[str | None, str | None], when: tuple[Condition, ...] = (), reason: str, safe: str
) -> Hazard:
    """Return a hazard of operators, whose names are separated by spaces, in some ranges of releases as in `quirk`."""

    def applies(operation: OperationView) -> bool:
        return all(condition.holds(operation) for condition in when)

    return Hazard(frozenset(operators.split()), releases_of(*releases), applies, reason, safe, conditions=when)


# ---------------------------------------------------------------------------------------------------------- conditions
def is_one_of(argument: str, *values: Any) -> Condition:
    """Return the condition that an argument has one of these values."""
    return Condition(f"`{argument}` is {_or(values)}", lambda operation: operation.get(argument) in values, argument)


def is_not(argument: str, value: Any) -> Condition:
    """Return the condition that an argument has another value."""
    return Condition(
        f"`{argument}` is not {_or([value])}", lambda operation: operation.get(argument) != value, argument
    )


def is_negative(argument: str) -> Condition:
    """Return the condition that an argument has a negative element."""
    return Condition(
        f"`{argument}` is negative",
        lambda operation: any(element < 0 for element in _elements(operation.get(argument))),
        argument,
    )


def is_of(argument: str, *dtypes: str) -> Condition:
    """Return the condition that a tensor, or one of a list, has one of these dtypes."""
    return Condition(
        f"`{argument}` is of {' or '.join(dtypes)}",
        lambda operation: any(tensor.dtype.name in dtypes for tensor in values_in(operation.get(argument))),
        argument,
    )


def has_several_rows(argument: str) -> Condition:
    """Return the condition that a tensor has more than one row along the axis of the operation, or may have."""
    return Condition(
        f"`{argument}` has more than one row along `axis`",
        lambda operation: bool(operation.get(argument).shape[operation.get("axis")] != 1),
        argument,
    )


def _has_padding(operation: OperationView) -> bool:
    padding = operation.get("padding")
    if padding:
        return any(amount != 0 for amount in _elements(padding))
    return any(extent != 1 for extent in _elements(operation.get("size")))  # automatic padding of a wider window


def _covers_batch_or_channels(operation: OperationView) -> bool:
    neutral = {"size": 1, "stride": 1, "dilation": 1, "padding": 0}
    return any(
        element != value
        for name, value in neutral.items()
        for element in _elements(list(operation.get(name) or ())[:2])
    )


def _ends_beyond_extent(operation: OperationView) -> bool:
    shape = operation.get("input").shape
    return any(
        isinstance(end, int) and isinstance(shape[axis], int) and end > shape[axis]
        for axis, end in zip(operation.get("axes"), operation.get("end"), strict=True)
        if -len(shape) <= axis < len(shape)
    )


def _has_khronos_filter(operation: OperationView) -> bool:
    """Return whether the shape fits only [in, out/groups, …]; if both layouts have the same shape, it is ambiguous."""
    filters, result = operation.get("filter"), operation.results[0].shape
    return isinstance(filters, Value) and filters.rank > 1 and len(result) > 1 and filters.shape[0] != result[1]


def _has_literal_bias(operation: OperationView) -> bool:
    bias = operation.get("bias")
    return isinstance(bias, int | float) and bias != 0 and operation.results[0].shape[1] != 1


def _is_reduced_along_nothing(operation: OperationView) -> bool:
    shape = operation.get("input").shape
    return any(shape[axis] == 0 for axis in operation.get("axes"))


def _has_indices_of_another_rank(operation: OperationView) -> bool:
    axis, rank = operation.get("axis"), operation.get("indices").rank
    return axis > 0 and (rank > 1 or (rank == 0 and 1 in operation.get("input").shape[:axis]))


IS_PADDED: Final = Condition("there is padding", _has_padding)
COVERS_BATCH_OR_CHANNELS: Final = Condition("the window covers the batch or channel axis", _covers_batch_or_channels)
ENDS_BEYOND_EXTENT: Final = Condition("`end` is beyond the extent", _ends_beyond_extent)
HAS_LOGICAL_LITERAL: Final = Condition(
    "an operand is a logical literal",
    lambda operation: any(isinstance(operand, bool) for operand in operation.arguments.values()),
)
HAS_INTEGER_LITERAL: Final = Condition(
    "an operand is an integer literal",
    lambda operation: any(
        isinstance(operand, int) and not isinstance(operand, bool) for operand in operation.arguments.values()
    ),
)
HAS_LITERAL_BIAS: Final = Condition("the bias of several channels is a literal", _has_literal_bias)
IS_REDUCED_ALONG_NOTHING: Final = Condition("a reduced axis has no elements", _is_reduced_along_nothing)
HAS_MORE_THAN_TWO_AXES: Final = Condition(
    "the input has more than two axes", lambda operation: bool(operation.get("input").rank > 2)
)
GOES_BACKWARDS_IN_CHUNKS: Final = Condition(
    "a chunk of several is taken from the end", lambda operation: any(entry[-1] < -1 for entry in operation.get("scan"))
)
HAS_INDICES_OF_ANOTHER_RANK: Final = Condition(
    "the axis is not the first, and the indices have several axes, or none after an axis of one element",
    _has_indices_of_another_rank,
)
HAS_KHRONOS_FILTER: Final = Condition("the filter is laid out as [in, out/groups, …]", _has_khronos_filter)


def _elements(argument: Any) -> Iterator[Any]:
    """Yield the Python numbers inside nested lists; sizes that are expressions are positive and do not count."""
    if isinstance(argument, list | tuple):
        for item in argument:
            yield from _elements(item)
    elif isinstance(argument, int | float | np.number) and not isinstance(argument, bool):
        yield operator.pos(argument)


def _or(values: Any) -> str:
    return " or ".join(f"`{str(value).lower()}`" for value in values)
