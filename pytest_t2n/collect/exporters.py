"""The exporters that a marker names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from t2n_core.exporters.registry import name_of


def read_exporters(value: Any) -> Mapping[str, Any]:
    """Return the exporters of a marker by name, each with its class if given as one.

    Raises ValueError for anything else, and InputError for a class with a wrong name. Does not check that an
    exporter of a name exists.
    """
    exporters: dict[str, Any] = {}
    for entry in value if isinstance(value, list | tuple) else [value]:
        module = sys.modules.get("t2n_core.exporters.exporter")  # loaded, if there is a class: this loads no torch
        if not isinstance(entry, str) and (
            module is None or not issubclass(entry if isinstance(entry, type) else type(entry), module.Exporter)
        ):
            raise ValueError(f"{entry!r} is neither the name of an exporter nor a subclass of t2n_core.Exporter")
        exporters[entry if isinstance(entry, str) else name_of(entry)] = None if isinstance(entry, str) else entry
    return exporters
