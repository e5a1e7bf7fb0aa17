"""All operators that have a definition."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from t2n_core.dialect.registry import Definition, definitions
from t2n_core.dialect.statements import STATEMENTS


@cache
def functions(*, standard: bool = False) -> Mapping[str, Definition]:
    """Return the definitions that are functions of the arguments alone, by the name of the operator.

    They are tract's, or with `standard` NNEF 1.0's.
    """
    package = importlib.import_module("t2n_core.dialect.meaning")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    return definitions(standard=standard)


def operators() -> dict[str, str]:
    """Return the definitions of all operators as text, by name: what they compute, domain, special values, source."""
    texts = {name: definition.function.__doc__ or "" for name, definition in functions().items()}
    texts.update({name: statement.__doc__ or "" for name, statement in STATEMENTS.items()})
    return dict(sorted(texts.items()))
