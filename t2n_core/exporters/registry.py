"""Exporters by name, from this package, other packages, and a test session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from t2n_core.entry_points import load_entry_points
from t2n_core.errors import InputError
from t2n_core.text import suggestion

if TYPE_CHECKING:
    from t2n_core.exporters.exporter import Exporter

BUILTIN: Final[Mapping[str, str]] = {
    "torch-onnx": "TorchOnnx",
    "torch-onnx-torchscript": "TorchOnnxScript",
    "torch-to-nnef": "TorchToNnef",
    "tract-convert": "TractConvert",
    "nnef-tools": "NnefTools",
}
"""Name -> class in `t2n_core.exporters.builtin`, which needs torch."""
_RESERVED: Final = ("t2n", *BUILTIN)
_NAME: Final = re.compile(r"[A-Za-z][\w-]*")


def name_of(kind: Any) -> str:
    """Return the name of a session's exporter. Raises InputError if it has no name of its own."""
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{kind!r} has the name {name!r}, not one of letters, digits, `-` and `_`")
    if name in _RESERVED:
        raise InputError(f"{kind!r} has the name {name!r}, which is another exporter's")
    return name


def check_names(names: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise InputError for a name of no exporter; `others` are names of the session. Imports no exporter."""
    exporter_names = [*others, *BUILTIN, *load_entry_points("t2n.exporters")]
    for name in names:
        if name not in exporter_names:
            raise InputError(f"there is no exporter {name!r}; {suggestion(name, exporter_names)}")


def find_exporter(name: str, others: Mapping[str, Any]) -> Exporter:
    """Return the exporter of a name; `others` are classes of a session by their names.

    Raises InputError for an unknown name, and for an object that is no exporter of this name.
    """
    from t2n_core.exporters.exporter import SUFFIXES, Exporter

    check_names([name], others)
    if name in BUILTIN:
        if name in load_entry_points("t2n.exporters"):
            raise InputError(f"an installed package registers the exporter {name!r}, which is another exporter's name")
        kind = getattr(import_module("t2n_core.exporters.builtin"), BUILTIN[name])
    else:
        kind = others[name] if name in others else load_entry_points("t2n.exporters")[name]
    try:
        exporter = kind() if isinstance(kind, type) else kind
    except Exception as cause:
        raise InputError(f"the exporter {name!r} cannot be created: {cause}") from cause
    if not isinstance(exporter, Exporter):
        raise InputError(f"the exporter {name!r} is {kind!r}, not a subclass of t2n_core.Exporter")
    if name not in BUILTIN and name_of(exporter) != name:
        raise InputError(f"the exporter {name!r} is {kind!r}, which has the name {exporter.name!r}")
    if exporter.format not in SUFFIXES:
        raise InputError(f"the exporter {name!r} writes {exporter.format!r}, not {' or '.join(SUFFIXES)}")
    return exporter
