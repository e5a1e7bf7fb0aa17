"""The registry of functions that define the operators of tract's NNEF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from t2n_core.errors import RegistryError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Definition:
    """The function that defines an operator, and how its result is typed."""

    name: str
    function: Callable[..., Any]
    """A pure function of NumPy arrays and Python values. Its parameters have the names of the operator's signature, its
    docstring is the definition."""
    result: str
    """`same`: the data type of the first tensor argument, if any; `common`: the type that the operands are cast to; the
    name of a parameter: the argument's type, or the type that it names; a data type, such as `bool`; `computed`: the
    returned array's type. One for each result, separated by spaces.
    """
    raw: bool
    """True for a function that takes arrays in the data types of their tensors, and not floats as float64."""
    common: bool = False
    """True for an operator whose operands are first cast to one data type, a non-constant operand's."""


_DEFINITIONS: Final[dict[str, Definition]] = {}
_OF_STANDARD: Final[dict[str, Definition]] = {}
"""The definitions that differ from tract's."""


def defines(
    *names: str, result: str = "same", raw: bool = False, common: bool = False, standard: bool = False
) -> Callable[[F], F]:
    """Return a decorator that registers a function as the definition of operators.

    One of the `standard` applies to NNEF 1.0 where tract's definition differs from it.
    Raises RegistryError for an operator that has one already.
    """
    definitions = _OF_STANDARD if standard else _DEFINITIONS

    def register(function: F) -> F:
        for name in names:
            if name in definitions:
                raise RegistryError(f"`{name}` is defined twice", op=name)
            definitions[name] = Definition(name, function, result, raw, common or result == "common")
        return function

    return register


def definitions(*, standard: bool = False) -> dict[str, Definition]:
    """Return all registered definitions by the name of the operator: tract's, or with `standard` NNEF 1.0's."""
    return {**_DEFINITIONS, **_OF_STANDARD} if standard else dict(_DEFINITIONS)
