"""Import of the user's module that a command names, as pytest imports a test file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from pytest_t2n.cli.project_ini import python_path
from t2n_core.errors import InputError, T2NError
from t2n_core.extras import EXTRAS


def import_user_module(name: str) -> Any:
    """Return a module by its dotted name or file, also in the current folder. Raises InputError if it has no import.

    The options of pytest's configuration in its folder or above add to the search path.
    """
    file = Path(name)
    if file.suffix != ".py":
        folders, dotted = [Path.cwd()], name
    elif file.is_file():
        folders, dotted = _folders_and_name(file.resolve())
    else:
        raise InputError(f"there is no file {name}")
    sys.path[:0] = map(str, [*folders, *python_path(folders[-1])])
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError as missing:
        absent = missing.name or ""
        if file.suffix != ".py" and (dotted == absent or dotted.startswith(f"{absent}.")):
            raise InputError(f"there is no module {name}", hint="from the current folder, or installed") from None
        if isinstance(missing, T2NError) or absent.partition(".")[0] in EXTRAS:
            raise
        raise InputError(
            f"{name} imports the module `{absent}`, which is not found",
            hint="install it, or name the folder that holds it: as PYTHONPATH=., or as `pythonpath` in the "
            "configuration of pytest",
        ) from None
    except ImportError as wrong:
        if isinstance(wrong, T2NError):
            raise
        raise InputError(f"{name} cannot be imported: {wrong}") from None


def _folders_and_name(file: Path) -> tuple[list[Path], str]:
    """Return the folders to search for a file's imports, and its name there, which begins with its packages."""
    root, names = file.parent, [file.stem]
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    return list(dict.fromkeys([root, file.parent])), ".".join(names)
