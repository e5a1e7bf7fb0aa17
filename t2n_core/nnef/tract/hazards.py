"""Operations that a target version accepts and then computes wrongly, or aborts on, and how they are recognised.

The table is `tools/spec_sources/hazards.toml`; its conditions name the functions below. A hazard that the
emitter repairs by itself is in `quirks/` instead.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from t2n_core.nnef.graph import Operation, Value, values_in
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.signatures import REQUIRED, Signature
from t2n_core.nnef.spec import Spec, spec_data


@dataclass(frozen=True, slots=True)
class BoundOperation:
    """One operation with the defaults of its signature filled in."""

    operation: Operation
    signature: Signature

    def get(self, name: str) -> Any:
        """Return the argument, or its default, or None."""
        if name in self.operation.arguments:
            return self.operation.arguments[name]
        parameter = self.signature.parameter(name)
        return None if parameter is None or parameter.default is REQUIRED else parameter.default

    def tensors(self) -> list[Any]:
        """Return the arguments of the tensor parameters: values and literals."""
        return [self.get(p.name) for p in self.signature.parameters if p.is_tensor and not p.is_array]


Test: TypeAlias = Callable[[BoundOperation, str, Sequence[Any]], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    test: Test
    argument: str
    values: Sequence[Any]

    def holds(self, bound: BoundOperation) -> bool:
        return self.test(bound, self.argument, self.values)


@dataclass(frozen=True, slots=True)
class Hazard:
    """A kind of operation that must not be written for some versions."""

    operators: frozenset[str]
    releases: Releases
    conditions: tuple[Condition, ...]
    reason: str
    safe: str

    def applies(self, bound: BoundOperation) -> bool:
        return all(condition.holds(bound) for condition in self.conditions)


@functools.cache
def hazards_for(spec: Spec) -> Mapping[str, tuple[Hazard, ...]]:
    """Return the hazards of this target version, by operator."""
    found: dict[str, list[Hazard]] = {}
    for hazard in all_hazards() if spec.target == "tract" else ():
        if spec.version in hazard.releases:
            for name in hazard.operators:
                found.setdefault(name, []).append(hazard)
    return {name: tuple(hazards) for name, hazards in found.items()}


@functools.cache
def all_hazards() -> tuple[Hazard, ...]:
    return tuple(
        Hazard(
            operators=frozenset(row["operators"]),
            releases=Releases.of(row.get("since"), row.get("before")),
            conditions=tuple(
                Condition(TESTS[c["is"]], c.get("argument", ""), c.get("values", ())) for c in row.get("when", ())
            ),
            reason=row["reason"],
            safe=row["safe"],
        )
        for row in spec_data("hazards.json")
    )


# ---------------------------------------------------------------------------------------------------------- conditions
def _one_of(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    return bound.get(argument) in values


def _other(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    return bound.get(argument) not in values


def _negative(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    return any(number < 0 for number in _numbers(bound.get(argument)))


def _has_padding(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    """Return whether there is padding; automatic padding pads if the window is larger than 1."""
    padding = bound.get("padding")
    return (
        any(padding_or_window != 0 for padding_or_window in _numbers(padding)) if padding else _wide(bound.get("size"))
    )


def _wide(size: Any) -> bool:
    return any(extent != 1 for extent in _numbers(size))


def _window_off_space(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    """Return whether the window covers, steps or is padded on the first two axes."""
    trivial = {"size": 1, "stride": 1, "dilation": 1, "padding": 0}
    return any(
        number != neutral for name, neutral in trivial.items() for number in _numbers(list(bound.get(name) or ())[:2])
    )


def _beyond_extent(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    shape = bound.get("input").shape
    bounds = zip(bound.get("axes"), bound.get("end"), strict=True)
    return any(
        isinstance(end, int) and isinstance(shape[axis], int) and end > shape[axis]
        for axis, end in bounds
        if -len(shape) <= axis < len(shape)
    )


def _logical_literal(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    return any(isinstance(tensor, bool) for tensor in bound.tensors())


def _integer_literal(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    return any(isinstance(tensor, int) and not isinstance(tensor, bool) for tensor in bound.tensors())


def _dtype(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    return any(tensor.dtype.name in values for tensor in values_in(bound.get(argument)))


def _khronos_deconv_filter(bound: BoundOperation, argument: str, values: Sequence[Any]) -> bool:
    """Return whether the shape fits only [in, out/groups, …]; if both layouts have the same shape, it is ambiguous."""
    weight, out = bound.get("filter"), bound.operation.outputs[0]
    return isinstance(weight, Value) and weight.rank > 1 and out.rank > 1 and weight.shape[0] != out.shape[1]


def _numbers(argument: Any) -> Iterator[Any]:
    """Yield the Python numbers inside nested lists; sizes that are expressions are positive and do not count."""
    if isinstance(argument, list | tuple):
        for item in argument:
            yield from _numbers(item)
    elif isinstance(argument, int | float | np.number) and not isinstance(argument, bool):
        yield operator.pos(argument)


TESTS: Final[Mapping[str, Test]] = {
    "one_of": _one_of,
    "other": _other,
    "negative": _negative,
    "padded": _has_padding,
    "window_off_space": _window_off_space,
    "beyond_extent": _beyond_extent,
    "logical_literal": _logical_literal,
    "integer_literal": _integer_literal,
    "dtype": _dtype,
    "khronos_deconv_filter": _khronos_deconv_filter,
}
