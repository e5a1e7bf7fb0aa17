"""Packages that bring operators, rewriters and targets: they say so by entry points, and need not be named elsewhere.

t2n.operators   a module; importing it registers its rules
t2n.rewriters   a rewriter, or a list of them
t2n.targets     a class over InferenceTarget, under the name of the target
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any, Literal, TypeAlias

from t2n_core.errors import InputError

Group: TypeAlias = Literal["t2n.operators", "t2n.rewriters", "t2n.targets"]


@cache
def load_entry_points(group: Group) -> dict[str, Any]:
    """Return what installed packages bring, by the names of their entry points, loaded once.

    Raises InputError for one that cannot be loaded, and for two of one name.
    """
    found: dict[str, Any] = {}
    homes: dict[str, str] = {}
    for point in sorted(metadata.entry_points(group=group), key=lambda one: (one.name, one.value)):
        home = point.dist.name if point.dist is not None else "a package without a name"
        if point.name in found:
            raise InputError(f"both {homes[point.name]} and {home} bring `{point.name}` in {group}")
        try:
            found[point.name] = point.load()
        except Exception as cause:
            message = f"{home} brings `{point.name}` in {group}, and {point.value} cannot be loaded: {cause}"
            raise InputError(message) from cause
        homes[point.name] = home
    return found


__all__ = ["Group", "load_entry_points"]
