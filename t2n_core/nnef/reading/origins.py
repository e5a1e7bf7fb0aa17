"""The file next to an archive with the origins of its values: operator, module and line in PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from t2n_core.errors import InputError
from t2n_core.foreign import ForeignFileError, decode_json, read_file
from t2n_core.nnef.graph import Graph

ORIGINS_FILE: Final = "origins.json"
_MOST: Final = 64 << 20


def origins_of(graph: Graph) -> dict[str, str]:
    """Return the origins of the values of a graph, by name."""
    made = ((value.name, operation.origin) for operation in graph.operations for value in operation.outputs)
    return {name: str(origin) for name, origin in made if origin is not None}


def write_origins(folder: Path, origins: Mapping[str, str]) -> None:
    """Write the file, if there are origins. Raises OSError."""
    if origins:
        (folder / ORIGINS_FILE).write_text(json.dumps(dict(origins), indent=1) + "\n", encoding="utf-8")


def read_origins(folder: Path) -> dict[str, str]:
    """Return the origins from the file in a folder; empty if there is none. Raises InputError for a damaged one."""
    file = folder / ORIGINS_FILE
    if not os.path.lexists(file):
        return {}
    try:
        return decode_json(read_file(file, _MOST), dict[str, str], ORIGINS_FILE)
    except (OSError, ForeignFileError) as wrong:
        raise InputError(f"{file} cannot be read: {wrong}") from wrong
