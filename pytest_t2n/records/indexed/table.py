"""The database of an index: positions of cells, rows of the matrix, the plan. It is temporary, and on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
PRAGMA cache_size = -16000;
CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE cells (
    nodeid TEXT NOT NULL, platform TEXT NOT NULL, row INTEGER NOT NULL,
    status TEXT NOT NULL, file INTEGER NOT NULL, place INTEGER NOT NULL, size INTEGER NOT NULL,
    UNIQUE (nodeid, platform)
);
CREATE TABLE planned (
    id INTEGER PRIMARY KEY, nodeid TEXT NOT NULL, engine TEXT NOT NULL, platform TEXT NOT NULL
);
CREATE TABLE joined (
    id INTEGER PRIMARY KEY, nodeid TEXT NOT NULL, engine TEXT NOT NULL, platform TEXT NOT NULL,
    UNIQUE (platform, engine, nodeid)
);
CREATE TABLE graphs (key TEXT PRIMARY KEY, file INTEGER NOT NULL, place INTEGER NOT NULL, size INTEGER NOT NULL);
"""
_BATCH = 2_000
_KNOWN = 20_000
"""Most rows whose ids are in memory."""
_ADD_CELL = """
INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (nodeid, platform) DO UPDATE SET
row = excluded.row, status = excluded.status, file = excluded.file, place = excluded.place,
size = excluded.size
"""


_SAME = "cells.nodeid = planned.nodeid AND cells.platform = planned.platform"


class Place(NamedTuple):
    """The place of a line: number of the file, offset and size in bytes."""

    file: int
    offset: int
    size: int


class CellTable:
    """Places of cells by node id and platform. The last of several records of a cell counts."""

    def __init__(self) -> None:
        """Create the database; the system removes it with the process. Raises sqlite3.Error."""
        self._base = sqlite3.connect("", isolation_level=None)  # no name: an already deleted temporary file
        self._base.executescript(_TABLES)
        self._base.execute("BEGIN")
        self._waiting: list[tuple[str, str, int, str, int, int, int]] = []
        self._rows: dict[str, int] = {}
        self.has_plan = False
        """True if there is a plan, even an empty one."""

    def add_cell(self, nodeid: str, platform: str, case: str, status: str, place: Place) -> None:
        """Add a cell."""
        self._waiting.append((nodeid, platform, self._row(case), status, *place))
        if len(self._waiting) >= _BATCH:
            self._flush()

    def file_of(self, nodeid: str, platform: str) -> int | None:
        """Return the number of the file with a cell, if there is one."""
        self._flush()
        query = "SELECT file FROM cells WHERE nodeid = ? AND platform = ?"
        found = self._base.execute(query, (nodeid, platform)).fetchone()
        return found[0] if found else None

    def add_graph(self, key: str, place: Place) -> None:
        """Add a graph."""
        self._base.execute("INSERT OR REPLACE INTO graphs VALUES (?, ?, ?, ?)", (key, *place))

    def plan(self, cells: Iterable[tuple[str, str]], platform: str) -> None:
        """Replace the plan of a platform by node ids with their engines."""
        self._base.execute("DELETE FROM planned WHERE platform = ?", (platform,))
        self.has_plan = True
        lines = ((nodeid, engine, platform) for nodeid, engine in cells)
        self._base.executemany("INSERT INTO planned (nodeid, engine, platform) VALUES (?, ?, ?)", lines)

    def join_plan(self, cells: Iterable[tuple[str, str, str]]) -> None:
        """Add node ids with their engines and platforms to the plan of all files."""
        self._base.executemany("INSERT OR IGNORE INTO joined (nodeid, engine, platform) VALUES (?, ?, ?)", cells)

    def joined_plan(self, platform: str) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield each engine of the plan of all files with its node ids, which must be read before the next engine."""
        engines = "SELECT engine FROM joined WHERE platform = ? GROUP BY engine ORDER BY min(id)"
        nodeids = "SELECT nodeid FROM joined WHERE platform = ? AND engine = ? ORDER BY id"
        for (engine,) in self._base.execute(engines, (platform,)).fetchall():
            yield engine, (nodeid for (nodeid,) in self._base.execute(nodeids, (platform, engine)))

    def seal(self) -> None:
        """Prepare for queries; cells can still be added."""
        self._flush()
        self._base.execute("CREATE INDEX IF NOT EXISTS of_row ON cells (row)")
        self._base.executescript("PRAGMA cache_size = -4000; PRAGMA shrink_memory")

    def count(self, status: str = "") -> int:
        """Return the number of cells, or of those with a status."""
        self._flush()
        query = "SELECT count(*) FROM cells" + (" WHERE status = ?" if status else "")
        return int(self._base.execute(query, (status,) if status else ()).fetchone()[0])

    def count_planned(self) -> int:
        """Return the number of planned cells."""
        return int(self._base.execute("SELECT count(*) FROM planned").fetchone()[0])

    def missing(self) -> Iterator[tuple[int, str, str, str]]:
        """Yield number, node id, engine and platform of each planned cell without a record, in order."""
        self._flush()
        yield from self._base.execute(
            "SELECT id, nodeid, engine, platform FROM planned "
            f"WHERE NOT EXISTS (SELECT 1 FROM cells WHERE {_SAME}) ORDER BY id"
        )

    def unplanned(self) -> Iterator[str]:
        """Yield the node id of each cell that is not planned."""
        self._flush()
        self._base.execute("CREATE INDEX IF NOT EXISTS of_plan ON planned (nodeid)")
        query = "SELECT nodeid FROM cells WHERE NOT EXISTS (SELECT 1 FROM planned WHERE {}) ORDER BY rowid"
        yield from (nodeid for (nodeid,) in self._base.execute(query.format(_SAME)))

    def cells(self, *, planned: bool = False) -> Iterator[tuple[str, str, Place]]:
        """Yield node id, platform and place of each cell, in the order of the plan or of their first records."""
        self._flush()
        tables = f"planned JOIN cells ON {_SAME} ORDER BY planned.id" if planned else "cells ORDER BY rowid"
        query = f"SELECT cells.nodeid, cells.platform, file, place, size FROM {tables}"
        for nodeid, platform, *place in self._base.execute(query):
            yield nodeid, platform, Place(*place)

    def plan_lines(self) -> Iterator[tuple[str, str, str]]:
        """Yield node id, engine and platform of each planned cell, in order."""
        yield from self._base.execute("SELECT nodeid, engine, platform FROM planned ORDER BY id")

    def planned(self, number: int) -> tuple[str, str, str]:
        """Return node id, engine and platform of a planned cell."""
        query = "SELECT nodeid, engine, platform FROM planned WHERE id = ?"
        nodeid, engine, platform = self._base.execute(query, (number,)).fetchone()
        return nodeid, engine, platform

    def graph(self, key: str) -> Place | None:
        """Return the place of a graph."""
        found = self._base.execute("SELECT file, place, size FROM graphs WHERE key = ?", (key,)).fetchone()
        return Place(*found) if found else None

    def take_graph(self, key: str) -> Place | None:
        """Return the place of a graph, and remove it."""
        found = self.graph(key)
        if found is not None:
            self._base.execute("DELETE FROM graphs WHERE key = ?", (key,))
        return found

    def graphs(self) -> Iterator[str]:
        """Yield the keys of all graphs."""
        yield from (key for (key,) in self._base.execute("SELECT key FROM graphs ORDER BY rowid"))

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield number and name of each row with cells, by name."""
        yield from self._base.execute(
            "SELECT id, name FROM rows WHERE EXISTS (SELECT 1 FROM cells WHERE row = rows.id) ORDER BY name"
        )

    def count_rows(self) -> int:
        """Return the number of rows with cells."""
        return int(self._base.execute("SELECT count(DISTINCT row) FROM cells").fetchone()[0])

    def row(self, name: str) -> int:
        """Return the number of a row by its name. Raises KeyError."""
        found = self._base.execute("SELECT id FROM rows WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise KeyError(name)
        return int(found[0])

    def cells_of_row(self, row: int) -> Iterator[Place]:
        """Yield the place of each cell of a row, in the order of their first records."""
        query = "SELECT file, place, size FROM cells WHERE row = ? ORDER BY rowid"
        for place in self._base.execute(query, (row,)):
            yield Place(*place)

    def close(self) -> None:
        """Remove the database."""
        self._base.close()

    def _row(self, case: str) -> int:
        known = self._rows.get(case)
        if known is None:
            self._base.execute("INSERT OR IGNORE INTO rows (name) VALUES (?)", (case,))
            if len(self._rows) >= _KNOWN:
                self._rows.clear()
            known = self._rows[case] = self.row(case)
        return known

    def _flush(self) -> None:
        if self._waiting:
            self._base.executemany(_ADD_CELL, self._waiting)
            self._waiting.clear()
