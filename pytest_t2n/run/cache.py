"""The export and the folder that the cells of a process share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.scratch import ScratchFolder


class ExportCache:
    """The export of the current case, for its next engines, and the folder of all archives.

    It holds at most one export, to save memory.
    """

    def __init__(self) -> None:
        self._key: object = None
        self._export: Any = None
        self._folder: ScratchFolder | None = None
        self._archives = 0

    def find(self, key: object) -> Any:
        """Return the export of `key`, or its failure; None if there is none.

        An export of another case is dropped, since cases do not recur.
        """
        if self._key != key:
            self.clear()
        return self._export

    def keep(self, key: object, export: object) -> None:
        """Store an export, or its failure."""
        self._key, self._export = key, export

    def clear(self) -> None:
        """Drop the export."""
        self._key = self._export = None

    def new_archive(self) -> Path:
        """Return a new path for an archive, in one folder for all; the caller removes the file."""
        if self._folder is None:
            from t2n_core.scratch import ScratchFolder

            self._folder = ScratchFolder()
        self._archives += 1
        return self._folder.path / f"model_{self._archives}.tar"

    def close(self) -> None:
        """Remove the folder, at the end of the session."""
        self.clear()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
