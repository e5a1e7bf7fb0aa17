"""Measure what a cell costs: bytes of its record, CPU of each command on records, CPU of an engine that judges it.

    python -m conformance.lab.measure.records site                    # records of a real run, as published
    python -m conformance.lab.measure.records site --bundle bundle    # and judging, with one engine and with all

Prints Markdown. Times are CPU seconds; peaks are one process's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from conformance.lab.command import command_parser
from conformance.lab.machine import cpu_of_children, describe_machine
from conformance.lab.measure.records.enlarge import enlarge
from conformance.lab.processes import ENVIRONMENT, ask_module
from pytest_t2n.records.file import each_record, write_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.schema import CellLine

_MEASURED = """
import sys
from pytest_t2n.cli import main
status = main(sys.argv[2:])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
open(sys.argv[1], "w").write(peak)
"""


def run(folder: Path, *words: object) -> tuple[float, float]:
    """Return CPU seconds of a command with its children, and the MB that it took at most itself."""
    before = cpu_of_children()
    command = [sys.executable, "-c", _MEASURED, str(folder / "peak"), *map(str, words)]
    subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return cpu_of_children() - before, int((folder / "peak").read_text()) / 1024


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )


def archives(records: Path) -> Iterator[tuple[str, float]]:
    """Yield the sizes of archives by the records, in bytes."""
    cells = [record for record in each_record(records) if isinstance(record, CellLine) and record.archive_bytes]
    sizes = sorted({cell.archive_sha256: cell.archive_bytes for cell in cells}.values())
    yield "archives of the records", len(sizes)
    yield "cells per archive", len(cells) / len(sizes)
    yield "bytes of an archive, median", median(sizes)
    yield "bytes of an archive, mean", sum(sizes) / len(sizes)


def on_records(records: Path, cells: int, engines: int, folder: Path) -> Iterator[str]:
    """Yield lines of a table: each command on a matrix of this size."""
    matrix = folder / "matrix.jsonl"
    write_records(matrix, enlarge(records, cells, engines))
    count = sum(isinstance(record, CellLine) for record in each_record(matrix))
    yield f"| {count} cells, {engines} engines | MB | bytes a cell | CPU s | µs a cell | peak MB |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    yield f"| matrix.jsonl | {size_of(matrix) / 1e6:.0f} | {size_of(matrix) / count:.0f} | | | |"
    commands = {
        "merge": ([matrix, "-o", folder / "merged.jsonl"], folder / "merged.jsonl"),
        "diff": ([matrix, "--engines", *_first_and_last(matrix)], None),
        "query": ([matrix, "--status", "crash"], None),
        "md": ([matrix, "-o", folder / "summary.md"], folder / "summary.md"),
        "html": ([matrix, "-o", folder / "site"], folder / "site"),
        "export": ([matrix, "--parquet", folder / "cells.parquet"], folder / "cells.parquet"),
    }
    for name, (words, output) in commands.items():
        seconds, peak = run(folder, "matrix", name, *words)
        bytes_of = (f"{size_of(output) / 1e6:.0f}", f"{size_of(output) / count:.0f}") if output else ("", "")
        yield f"| {name} | {bytes_of[0]} | {bytes_of[1]} | {seconds:.1f} | {seconds / count * 1e6:.0f} | {peak:.0f} |"


def _first_and_last(matrix: Path) -> Sequence[str]:
    titles = dict.fromkeys(record.engine for record in each_record(matrix) if isinstance(record, CellLine))
    return [next(iter(titles)), next(reversed(titles))]


def on_bundle(bundle: Path, parts: int) -> Iterator[str]:
    """Yield lines of a table: a part of a bundle with one engine, with one of each line, and with all."""
    yield "| engines | cells | own ms a cell | engines' ms a cell | statuses |"
    yield "| ---: | ---: | ---: | ---: | --- |"
    for engines in ("latest", "all-minors", "all"):
        figures = ask_module("conformance.lab.measure.records.judging", bundle, engines, parts)
        count, cells = figures.pop("engines"), figures.pop("cells")
        times = [f"{figures.pop(name) / cells * 1e3:.1f}" for name in ("own_s", "engines_s")]
        figures.pop("cases")
        statuses = ", ".join(f"{number} {status}" for status, number in figures.items())
        yield f"| {count} | {cells} | {times[0]} | {times[1]} | {statuses} |"
    for name in ("archives", "samples"):
        files = [file for file in (bundle / name).iterdir() if file.is_file()]
        yield f"| {name} | {len(files)} files | {sum(map(size_of, files)) / len(files):.0f} bytes each | | |"


def main() -> None:
    """Print what the options ask for."""
    parser = command_parser("conformance.lab.measure.records", __doc__)
    parser.add_argument("records", type=Path, help="matrix.jsonl of a real run, or a directory with one")
    parser.add_argument("--cells", type=int, default=60_000)
    parser.add_argument("--engines", type=int, default=54)
    parser.add_argument("--bundle", type=Path, help="a bundle of real archives")
    parser.add_argument("--parts", type=int, default=1, help="of the bundle, of which one is judged")
    options = parser.parse_args()
    records = options.records / MATRIX_FILE if options.records.is_dir() else options.records
    print(json.dumps(describe_machine()), flush=True)
    for name, value in archives(records):
        print(f"- {name}: {value:.1f}", flush=True)
    with TemporaryDirectory(prefix="t2n-records-") as name:
        for line in on_records(records, options.cells, options.engines, Path(name)):
            print(line, flush=True)
        if options.bundle is not None:
            print()
            for line in on_bundle(options.bundle, options.parts):
                print(line, flush=True)


if __name__ == "__main__":
    main()
