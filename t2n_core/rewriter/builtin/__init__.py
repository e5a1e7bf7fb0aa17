"""Rewriters that real libraries need, one file per library. They apply if it is loaded, and cost nothing otherwise."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from functools import cache

from t2n_core.entry_points import load_entry_points
from t2n_core.errors import InputError
from t2n_core.rewriter.specs import Rewriter


def builtin_rewriters() -> tuple[Rewriter, ...]:
    """Return the rewriters for the libraries that this program has loaded, and those from packages.

    Raises InputError for a package whose rewriters cannot be loaded.
    """
    library_rewriters = tuple(r for library in _LIBRARIES if library in sys.modules for r in _of(library))
    return (*library_rewriters, *_from_packages())


@cache
def _from_packages() -> tuple[Rewriter, ...]:
    rewriters: list[Rewriter] = []
    for name, value in load_entry_points("t2n.rewriters").items():
        for rewriter in [value] if isinstance(value, Rewriter) else value:
            if not isinstance(rewriter, Rewriter):
                raise InputError(f"`{name}` of t2n.rewriters has {rewriter!r}, which is not a rewriter")
            rewriters.append(rewriter)
    return tuple(rewriters)


@cache
def _of(library: str) -> tuple[Rewriter, ...]:
    file = importlib.import_module(f"{__name__}.for_{library}")
    several = (value if isinstance(value, tuple) else (value,) for value in vars(file).values())
    return tuple(member for group in several for member in group if isinstance(member, Rewriter))


_LIBRARIES = tuple(m.name.removeprefix("for_") for m in pkgutil.iter_modules(__path__) if m.name.startswith("for_"))
