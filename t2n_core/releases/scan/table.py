"""The spec table of tract that a scan continues with a release: as it is installed, and its source in a checkout."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from packaging.version import Version

from t2n_core.errors import InputError
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.spec import spec_data
from t2n_core.releases.scan.changes import COLUMNS, TableRow

_SOURCES: Final = Path("tools", "spec_sources")


def installed_rows(until: str) -> list[TableRow]:
    """Return the rows of the installed table when `until` was the newest release; their kind is unknown."""
    return [
        _row_until(_row(name, entry), until)
        for name, entries in spec_data("tract.json")["operators"].items()
        for entry in entries
        if Version(until) in Releases.of(entry["since"])
    ]


def _row(name: str, entry: dict[str, Any]) -> TableRow:
    status = next((word for word in ("absent", "broken") if word in entry), "ok")
    parameters, results = (", ".join(map(_parameter, entry[key])) for key in ("parameters", "results"))
    return {
        "registry": entry["registry"],
        "operator": name,
        "kind": "",
        "since": entry["since"],
        "until": entry["until"],
        "parameters": parameters,
        "results": results,
        "status": status,
        "reason": entry.get(status, ""),
    }


def _parameter(parameter: list[Any]) -> str:
    name, type_, *default = parameter
    return f"{name}: {type_}" + "".join(f" = {'none' if value is None else json.dumps(value)}" for value in default)


class SpecSources:
    """The folder `tools/spec_sources` of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.folder = checkout / _SOURCES
        self._operators, self._releases = self.folder / "tract_operators.tsv", self.folder / "tract_releases.txt"
        if not self._operators.exists():
            raise InputError(f"{checkout} is no checkout of pytest-t2n: it has no {_SOURCES}")

    def releases(self) -> list[str]:
        """Return the releases of the table, ascending."""
        return self._releases.read_text("utf-8").split()

    def rows(self, until: str) -> list[TableRow]:
        """Return the rows that the table had when `until` was the newest release."""
        with self._operators.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        return [_row_until(row, until) for row in rows if Version(until) in Releases.of(row["since"])]

    def write(self, rows: Sequence[TableRow], release: str) -> None:
        """Write the rows with a release, sorted by registry, operator and releases."""
        text = "".join("\t".join(row[column] for column in COLUMNS) + "\n" for row in sorted(rows, key=_order))
        self._operators.write_text("\t".join(COLUMNS) + "\n" + text, "utf-8")
        releases = sorted({*self.releases(), release}, key=Version)
        self._releases.write_text("".join(f"{version}\n" for version in releases), "utf-8")


def _row_until(row: TableRow, newest: str) -> TableRow:
    return {**row, "until": min(row["until"], newest, key=Version)}


def _order(row: TableRow) -> tuple[str, str, Version]:
    return row["registry"], row["operator"], Version(row["since"])
