"""Judge torch.onnx's files of the architectures of the suite `models` in chosen releases of tract.

    python -m conformance.onnx.architectures --folder nets --tract latest --repair
    python -m conformance.onnx.architectures --folder nets --tract 0.21,0.22,0.23 --table

torch.onnx writes each architecture with the suite's dynamic axes, or at its example's sizes where that fails; the file
is judged as by `t2n check model.onnx`, and by PyTorch's outputs at examples of two sizes. Needs the suite's packages,
onnxscript, and the packages of the extra `onnx`. The folder keeps the files and a row for each architecture and
release, so that an interrupted run resumes where it stopped. `--repair` tries the repairs on each file that a release
does not compute, for half a minute, and `--table` writes the table that the documentation reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.measure.peers.process import Worker
from conformance.lab.pages.tables import figures_table
from conformance.lab.rows import RowFile, read_rows
from conformance.onnx.architectures.judging import export, judge, repair
from conformance.onnx.architectures.table import VERDICTS, rows_of, totals, write
from t2n_core.engine import close_all, engine_for, resolve_engines
from t2n_core.engine.protocol import Engine

Json = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.onnx.architectures", __doc__)
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="where files and rows are kept")
    parser.add_argument("--models", default="", metavar="TEXT", help="only architectures with one of these, by commas")
    parser.add_argument("--repair", action="store_true", help="try repairs on what a release does not compute")
    parser.add_argument("--table", action="store_true", help="write the table of the documentation")
    add_tract(parser, "0.21,0.22,0.23")
    chosen = parser.parse_args(arguments)
    folder = chosen.folder
    exports = _export(folder, chosen.models.split(","))
    written = [row["name"] for row in exports if row["sizes"]]
    verdicts, repaired = {}, {}
    for resolved in resolve_engines(chosen.tract):
        release, engine = resolved.version, engine_for(resolved)
        verdicts[release] = _added(folder / f"{release}.jsonl", written, partial(_judged, judge, folder, engine))
        failed = [row.name for row in rows_of(exports, {release: verdicts[release]}) if row.fails]
        after, fix = folder / f"{release}-repaired.jsonl", partial(_judged, repair, folder, engine)
        repaired[release] = _added(after, failed, fix) if chosen.repair else read_rows(after)
    close_all()
    rows = rows_of(exports, verdicts, repaired)
    if chosen.table:
        write(rows)
    counts = [[release, *(str(totals(rows, release)[verdict]) for verdict in VERDICTS)] for release in verdicts]
    print(figures_table(["tract", *VERDICTS], counts))
    return 0


def _export(folder: Path, words: list[str]) -> list[Json]:
    """Write the files that a folder does not have, and return the rows of these architectures."""
    from conformance.suites.test_models import CASES

    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in CASES if any(word in name for word in words)]
    worker = Worker("torch-onnx")
    try:
        return _added(
            folder / "exports.jsonl",
            names,
            lambda name: export(worker, name, folder / name, free=bool(CASES[name].dynamic_axes)),
        )
    finally:
        worker.close()


def _judged(judging: Callable[[Path, Engine], Json], folder: Path, engine: Engine, name: str) -> Json:
    return judging(folder / name, engine)


def _added(file: Path, names: Iterable[str], of: Callable[[str], Json]) -> list[Json]:
    """Add the rows that a file lacks, and return the rows of all names."""
    done = {row["name"]: row for row in read_rows(file)}
    for name in names:
        if name not in done:
            say(f"{file.stem}: {name}")
            done[name] = {"name": name, **of(name)}
            RowFile(file).add(done[name])
    return [done[name] for name in names]


if __name__ == "__main__":
    sys.exit(main())
