"""The recipes of cases: for each operator, a function from draws to arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, Literal

from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw
from t2n_core.errors import RegistryError, SpecError

Recipe = Callable[[Draw], "dict[str, Any] | Case"]
"""Returns the arguments, or the case itself where it needs more than those."""
Dynamic = Literal["", "any", "first"]
"""The axes whose extent may be a symbol, in every fourth case: none, any, or the first one only."""

CASES: Final = 40
"""Cases of each operator."""
_RECIPES: Final[dict[str, tuple[Recipe, frozenset[str], Dynamic]]] = {}
_FAMILIES: Final = (
    *("elements", "indexing", "sums", "layers", "resampling", "streams", "results", "loops"),
    *(f"standard.{family}" for family in ("elements", "shapes", "windows", "sums", "pixels")),
)


def recipe(*names: str, constant: tuple[str, ...] = (), dynamic: Dynamic = "") -> Callable[[Recipe], Recipe]:
    """Return a decorator that registers the recipe of operators; `constant` names the tensors that are stored.

    Raises RegistryError for an operator that has a recipe.
    """

    def register(function: Recipe) -> Recipe:
        for name in names:
            if name in _RECIPES:
                raise RegistryError(f"`{name}` has two recipes", op=name)
            _RECIPES[name] = function, frozenset(constant), dynamic
        return function

    return register


def _recipes() -> dict[str, tuple[Recipe, frozenset[str], Dynamic]]:
    for family in _FAMILIES:
        import_module(f"t2n_core.dialect.cases.{family}")
    return _RECIPES


def operators() -> list[str]:
    """Return the operators that have cases."""
    return sorted(_recipes())


def cases(op: str, count: int = CASES) -> Iterator[Case]:
    """Yield cases of an operator: the same ones in every process, drawn from the operator's name and their number.

    Raises SpecError for an operator without a recipe.
    """
    if op not in _recipes():
        raise SpecError(f"no cases are drawn for `{op}`", op=op)
    make, constant, dynamic = _RECIPES[op]
    for number in range(count):
        draw = Draw(op, number)
        arguments = make(draw)
        case = arguments if isinstance(arguments, Case) else Case(op, arguments, constant)
        yield with_symbol(case, draw, dynamic) if dynamic and number % 4 == 3 and not case.dynamic else case


def with_symbol(case: Case, draw: Draw, dynamic: Dynamic) -> Case:
    """Return a case with the extent of one axis as a symbol, in all inputs that have this extent along that axis."""
    inputs = {name: array.shape for name, _, array in case.tensors() if name not in case.constant and array.ndim}
    if not inputs or (dynamic == "any" and case.constant):  # a stored operand has the extent as a number
        return case
    axis = draw.integer(0, max(map(len, inputs.values())) - 1) if dynamic == "any" else 0
    extents = {name: shape[axis] for name, shape in inputs.items() if axis < len(shape)}
    extent = max(extents.values())  # an extent of 1 beside it is broadcast
    return replace(case, dynamic={name: axis for name, size in extents.items() if size == extent})
