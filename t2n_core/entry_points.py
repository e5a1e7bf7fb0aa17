"""Packages that provide operators, rewriters, targets and exporters through entry points.

t2n.operators   a module; importing it registers its rules
t2n.rewriters   a rewriter, or a list of them
t2n.targets     a subclass of InferenceTarget, under the name of the target
t2n.exporters   a subclass of Exporter, under the name of the exporter
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any, Literal, TypeAlias

from t2n_core.errors import InputError

Group: TypeAlias = Literal["t2n.operators", "t2n.rewriters", "t2n.targets", "t2n.exporters"]


@cache
def load_entry_points(group: Group) -> dict[str, Any]:
    """Return the objects of installed packages, by the names of their entry points, loaded once.

    Raises InputError for an entry point that cannot be loaded, and for two of the same name.
    """
    objects: dict[str, Any] = {}
    homes: dict[str, str] = {}
    for point in sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        home = point.dist.name if point.dist is not None else "a package without a name"
        if point.name in objects:
            raise InputError(f"both {homes[point.name]} and {home} provide `{point.name}` in {group}")
        try:
            objects[point.name] = point.load()
        except Exception as cause:
            message = f"{home} provides `{point.name}` in {group}, and {point.value} cannot be loaded: {cause}"
            raise InputError(message) from cause
        homes[point.name] = home
    return objects
