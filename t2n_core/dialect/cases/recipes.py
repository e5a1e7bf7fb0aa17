"""The recipes of cases: for each operator, a function from draws to arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw
from t2n_core.errors import RegistryError, SpecError

Recipe = Callable[[Draw], dict[str, Any]]

CASES: Final = 40
"""Cases of each operator."""
_RECIPES: Final[dict[str, tuple[Recipe, frozenset[str]]]] = {}
_FAMILIES: Final = ("elements", "places", "sums", "networks", "resampling", "streams", "results")


def recipe(*names: str, constant: tuple[str, ...] = ()) -> Callable[[Recipe], Recipe]:
    """Return a decorator that registers the recipe of operators; `constant` names the tensors that are stored.

    Raises RegistryError for an operator that has a recipe.
    """

    def register(function: Recipe) -> Recipe:
        for name in names:
            if name in _RECIPES:
                raise RegistryError(f"`{name}` has two recipes", op=name)
            _RECIPES[name] = function, frozenset(constant)
        return function

    return register


def _loaded() -> dict[str, tuple[Recipe, frozenset[str]]]:
    for family in _FAMILIES:
        import_module(f"t2n_core.dialect.cases.{family}")
    return _RECIPES


def operators() -> list[str]:
    """Return the operators that have cases."""
    return sorted(_loaded())


def cases(op: str, count: int = CASES) -> Iterator[Case]:
    """Yield cases of an operator.

    Raises SpecError for an operator without a recipe.
    """
    if op not in _loaded():
        raise SpecError(f"no cases are drawn for `{op}`", op=op)
    make, constant = _RECIPES[op]
    for number in range(count):
        yield Case(op, make(Draw(op, number)), constant)
