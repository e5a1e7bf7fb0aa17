"""The exporters that a marker names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def read_exporters(value: Any) -> Mapping[str, Any]:
    """Return the exporters of a marker by name, each with its class if it is one. Raises ValueError for others.

    Names are checked when the test runs: a conftest.py may register further ones.
    """
    exporters: dict[str, Any] = {}
    for one in value if isinstance(value, list | tuple) else [value]:
        name = one if isinstance(one, str) else getattr(one, "name", None)
        module = sys.modules.get("t2n_core.exporters.exporter")  # loaded, if there is a class: this loads no torch
        if not isinstance(one, str) and (
            module is None or not issubclass(one if isinstance(one, type) else type(one), module.Exporter)
        ):
            raise ValueError(f"{one!r} is neither the name of an exporter nor a subclass of t2n_core.Exporter")
        if not isinstance(name, str) or not name:
            raise ValueError(f"{one!r} has no name")
        exporters[name] = None if isinstance(one, str) else one
    return exporters
