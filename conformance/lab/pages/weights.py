"""Measure storage formats of weights by layer and release: support, sizes, times.

    python -m conformance.lab.pages.weights measure --tract 0.19,0.20,0.21,0.22,0.23 -o weights.jsonl
    python -m conformance.lab.pages.weights write weights.jsonl --page docs/how-to/float16.md

The nets are from the suite `weights`. A cell is the weights' bytes and the time of a run, both as a share of float32's
in the same release, where the engine computes what PyTorch does with the rounded weights, at `approximate`. A dash is a
net that stays float32, since none of its weights can be stored this way.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from conformance.lab.command import add_tract, command_parser
from conformance.lab.pages.tables import show, table
from conformance.lab.rows import RowFile, read_rows

BEGIN = "<!-- table of stored weights -->"
STAYS = "-"


def measure(name: str, versions: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each format and engine: `status`, `stored`, `bytes`, `ratio`, `notes`."""
    import torch

    from conformance.cases.weights import FORMATS, NETS
    from conformance.lab.measure.float16.timing import time_archives
    from t2n_core import ModelExport, TractNNEF
    from t2n_core.engine import resolve_engines
    from t2n_core.nnef.dat import stored_size

    torch.manual_seed(zlib.crc32(name.encode()))
    export = ModelExport(NETS[name].make().eval(), NETS[name].inputs())
    for engine in resolve_engines(versions, offline=True):
        plain = export.to(TractNNEF(check_io=False, engine=engine), folder / "float32.nnef.tar")
        archives, rows = {"float32": plain.archive}, {}
        for format, chosen in FORMATS.items():
            target = TractNNEF(check_io=False, engine=engine, weights=chosen)
            result = export.to(target, folder / f"{format}.nnef.tar")
            outcome = result.check_parity("approximate")
            sizes = [
                sum(stored_size(value.weight) for _, value in variant.graph.variables() if value.weight is not None)
                for variant in (plain, result)
            ]
            rows[format] = {
                "net": name, "format": format, "version": engine.version, "status": str(outcome.status),
                "stored": len(result.stored), "bytes": sizes, "notes": list(result.notes),
            }  # fmt: skip
            if outcome.passed and result.stored:
                archives[format] = result.archive
        times = time_archives(engine, archives, plain.samples[0].inputs, folder)
        for format, row in rows.items():
            yield {**row, "ms": times["float32"], "ratio": times.get(f"{format} ratio")}


def cell_of(row: Mapping[str, Any]) -> str:
    """Return the entry of a net in a format and release."""
    if row["status"] != "pass":
        return f"**{row['status']}**"
    if not row["stored"]:
        return STAYS
    before, after = row["bytes"]
    return f"{after / before:.2f}, {row['ratio']:.2f}"


def table_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the table in Markdown, with the reasons of what stays float32 below. Raises ValueError for no rows."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        cells.setdefault((row["format"], row["net"]), {})[row["version"]] = cell_of(row)
        for reason in _reasons(row["notes"]):
            reasons.setdefault(reason, {})[row["net"]] = None
    if not cells:
        raise ValueError("there are no rows")
    versions = sorted({version for by_version in cells.values() for version in by_version}, key=Version)
    order = sorted(cells, key=lambda key: list(dict.fromkeys(format for format, _ in cells)).index(key[0]))
    lines = ([*key, *(cells[key].get(version, "") for version in versions)] for key in order)
    formats = table(["format", "net", *versions], lines)
    stays = [f"- {reason}: {', '.join(nets)}" for reason, nets in reasons.items()]
    return "\n".join([formats, "", "What stays float32, wholly or in part:", "", *stays]) if stays else formats


def _reasons(notes: Sequence[str]) -> Iterator[str]:
    for note in notes:
        for part in note.split("; "):
            _, stays, reason = part.partition(" float32: ")
            if stays and not reason.startswith("`"):
                yield reason


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = command_parser("conformance.lab.pages.weights", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="measure, a line of JSON for each net, format and engine")
    add_tract(measuring)
    measuring.add_argument("--nets", metavar="A,B", help="only these")
    measuring.add_argument(
        "-o", "--output", type=Path, required=True, help="continued: what it has is not measured again"
    )
    writing = commands.add_parser("write", help="write the table")
    writing.add_argument("rows", nargs="+", type=Path, help="what was measured")
    writing.add_argument("--page", type=Path, help="put the table between the marks of this page")
    options = parser.parse_args(arguments)
    if options.command == "measure":
        _measure(options)
        return 0
    show(table_of(read_rows(*options.rows)), BEGIN, options.page)
    return 0


def _measure(options: argparse.Namespace) -> None:
    from conformance.cases.weights import NETS

    rows = RowFile(options.output)
    done = {row["net"] for row in read_rows(options.output)}
    names = list(NETS) if options.nets is None else options.nets.split(",")
    for name in names:
        if name in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for row in measure(name, options.tract, Path(folder)):
                rows.add(row)
                print(row["net"], row["format"], row["version"], cell_of(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
