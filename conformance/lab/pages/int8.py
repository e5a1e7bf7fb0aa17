"""Write what the suite `int8` measured as the table of the documentation.

    pytest conformance/suites/test_int8.py --complete --t2n-tract=all-minors --t2n-report=site
    python -m conformance.lab.pages.int8 site/matrix.jsonl --write docs/how-to/quantised.md

A row is a net, a column an engine. A cell is the largest difference from PyTorch over all samples and sizes: in steps
of the output's grid, for nets with real outputs as a number, for deep nets as the root mean square in units of the
outputs' deviation, with the largest one between PyTorch's own engines after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from conformance.lab.command import command_parser
from conformance.lab.pages.tables import show, table
from conformance.lab.rows import read_rows

BEGIN = "<!-- table of suite int8 -->"
_NET = re.compile(r"test_int8\[(?P<net>.+)-tract-(?P<version>[\d.]+)\]")
_LIMIT = re.compile(r"atol=(?P<atol>[\d.e+-]+)")
_MARGIN = 1.01
"""The factor of a step that the suite allows."""


def cell_of(record: Mapping[str, Any]) -> str:
    """Return the entry for the record of a net in an engine."""
    if record["status"] != "pass":
        return f"**{record['status']}**"
    if record.get("metrics"):
        metric = record["metrics"][0]
        bound = float(metric["required"].split()[-1])
        return f"{metric['value']:.3f} of {bound:.3f}"
    largest = max(output["max_abs"] for output in record["outputs"])
    limit = _LIMIT.match(record["outputs"][0].get("limit", ""))
    if limit is None:
        return f"{largest:.1e}"
    return f"{largest / (float(limit['atol']) / _MARGIN):.2g}"


def table_of(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the table in Markdown. Raises ValueError if no record is of the suite."""
    rows: dict[str, dict[str, str]] = {}
    for record in records:
        match = _NET.search(str(record.get("nodeid", "")))
        if match is not None and "status" in record:
            rows.setdefault(match["net"], {})[match["version"]] = cell_of(record)
    if not rows:
        raise ValueError("no record is of the suite `int8`")
    versions = sorted({version for row in rows.values() for version in row}, key=Version)
    cells = ([net, *(row.get(version, "") for version in versions)] for net, row in rows.items())
    return table(["net", *versions], cells)


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("conformance.lab.pages.int8", __doc__)
    parser.add_argument("records", nargs="+", type=Path, help="matrix.jsonl of a report, or several of them")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the marks of this page")
    options = parser.parse_args(arguments)
    show(table_of(read_rows(*options.records)), BEGIN, options.write)


if __name__ == "__main__":
    main()
