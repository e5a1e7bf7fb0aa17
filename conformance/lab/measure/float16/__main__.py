"""Measure float16 on the architectures of the suite `models`, and write the page of the documentation.

python -m conformance.lab.measure.float16 stored --tract 0.19,0.20,0.21,0.22,0.23 -o stored.jsonl
python -m conformance.lab.measure.float16 auto --tract 0.23 -o auto.jsonl
python -m conformance.lab.measure.float16 page stored.jsonl auto.jsonl -o docs/reference/float16.md

A file of results is continued: what it has is not measured again. Needs the libraries of the suite `models`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from conformance.lab.command import add_tract, command_parser
from conformance.lab.machine import describe_machine
from conformance.lab.measure.float16.page import page
from conformance.lab.pages.long_tables import write_page
from conformance.lab.rows import RowFile, read_rows
from t2n_core.engine import resolve_engines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = command_parser("conformance.lab.measure.float16", __doc__)
    parser.add_argument("kind", choices=["stored", "auto", "page"])
    parser.add_argument("results", type=Path, nargs="*", help="of the page: files of results")
    add_tract(parser)
    parser.add_argument("--models", default="", metavar="TEXT", help="only architectures with one of these, by commas")
    parser.add_argument("--until", default="99:99", metavar="HH:MM", help="begin no architecture after this time")
    parser.add_argument("-o", "--output", type=Path, required=True, help="results, a line for each, or the page")
    options = parser.parse_args(arguments)
    if options.kind == "page":
        write_page(options.output, _page(options.results), options.output.parent / "tables")
        return 0
    _measure(options)
    return 0


def _page(files: Sequence[Path]) -> str:
    rows = read_rows(*files)
    searched = [row for row in rows if "plan" in row or "searched" in row]
    return page([row for row in rows if row not in searched], searched, str(describe_machine()["cpu"]))


def _measure(options: argparse.Namespace) -> None:
    from conformance.lab.measure.float16 import auto, stored
    from conformance.suites.test_models import CASES

    measure = stored.measure if options.kind == "stored" else auto.measure
    engines = resolve_engines(options.tract, offline=True)
    done = {(row["name"], row["version"]) for row in read_rows(options.output)}
    rows = RowFile(options.output)
    words = options.models.split(",")
    names = [name for name in CASES if any(word in name for word in words)]
    for name in [name for start in range(8) for name in names[start::8]]:
        left = [engine for engine in engines if (name, engine.version) not in done]
        if not left or time.strftime("%H:%M") >= options.until:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for row in measure(name, CASES[name], left, Path(folder)):
                rows.add(row)
                print(row["name"], row["version"], row.get("ratio"), row.get("failed", row.get("level")), flush=True)


if __name__ == "__main__":
    sys.exit(main())
