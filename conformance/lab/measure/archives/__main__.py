"""Export the architectures of the suite `models` with two exporters, and judge the archives with and without PyTorch.

    python -m conformance.lab.measure.archives --peer PYTHON --folder .tox/dialect/archives
    python -m conformance.lab.measure.archives --folder .tox/dialect/archives --page docs/reference/dialect/archives.md

The other exporter is torch-to-nnef, in a separate environment: `--peer`'s, or else one made under `.tox/peers`.
Each archive is judged by the definitions of its operators on drawn inputs, as `t2n check ARCHIVE` does, and by
PyTorch's outputs on PyTorch's inputs. An interrupted run resumes where it stopped; `--again` judges the folder's
archives once more.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.machine import ROOT
from conformance.lab.measure.archives.judging import judge_archive
from conformance.lab.measure.archives.page import archives_page
from conformance.lab.measure.peers.architectures import ARCHIVE
from conformance.lab.measure.peers.process import Worker
from conformance.lab.pages.long_tables import write_page
from conformance.lab.rows import RowFile, read_rows
from t2n_core.engine import ResolvedEngine, close_all, engine_for, resolve_engines

EXPORT_SECONDS = 120.0
EXPORTERS = ("ours", "torch-to-nnef")


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.measure.archives", __doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where archives and results are kept")
    parser.add_argument("--peer", type=Path, metavar="PYTHON", help="the Python of torch-to-nnef's environment")
    parser.add_argument("--models", default="", metavar="TEXT", help="only architectures with one of these, by commas")
    parser.add_argument("--exporter", choices=EXPORTERS, help="only one of the two")
    parser.add_argument("--dynamic", action="store_true", help="with the dynamic axes of the suite; default none")
    parser.add_argument("--again", action="store_true", help="judge once more what is exported")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the documentation, and do no more")
    add_tract(parser, "0.21,0.23")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    results = options.folder / "results.jsonl"
    if options.page:
        write_page(options.page, archives_page(read_rows(results)), options.page.parents[1] / "tables")
        return 0
    measure(options, RowFile(results), read_rows(results))
    return 0


def measure(options: argparse.Namespace, rows: RowFile, before: Sequence[dict[str, Any]]) -> None:
    """Export and judge what the rows do not have yet; with `again` judge all."""
    from conformance.suites.test_models import CASES

    done = set() if options.again else {(row["name"], row["exporter"], row["release"]) for row in before}
    workers = dict(_workers(options))
    names = [name for name in CASES if any(word in name for word in options.models.split(","))]
    engines = resolve_engines(options.tract)
    for name in names:
        for engine in engines:
            for exporter, worker in workers.items():
                if (name, exporter, engine.version) not in done:
                    row = _row(name, exporter, engine, worker, options)
                    rows.add(row)
                    say(" ".join(str(row.get(key, "")) for key in ("name", "exporter", "release", *_SHOWN)))
    for worker in workers.values():
        worker.close()
    close_all()


_SHOWN = ("export", "definitions", "same_inputs", "pytorch", "meaning", "reason")


def _workers(options: argparse.Namespace) -> Iterator[tuple[str, Worker]]:
    if options.exporter != EXPORTERS[1]:
        yield EXPORTERS[0], Worker(EXPORTERS[0])
    if options.exporter != EXPORTERS[0]:
        folder, environment = ROOT / ".tox/peers", "torch-to-nnef-models"
        its = Worker(EXPORTERS[1], options.peer) if options.peer else None
        yield EXPORTERS[1], its or Worker.in_environment(EXPORTERS[1], folder, environment)


def _row(
    name: str, exporter: str, engine: ResolvedEngine, worker: Worker, options: argparse.Namespace
) -> dict[str, Any]:
    folder = (options.folder / exporter / engine.version / name).absolute()
    row: dict[str, Any] = {"name": name, "exporter": exporter, "release": engine.version}
    if not (folder / ARCHIVE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        job = {"name": name, "release": engine.version, "folder": str(folder), "file": ARCHIVE}
        axes = "suite" if options.dynamic else ""
        answer = worker.ask("architectures", EXPORT_SECONDS, **job, axes=axes, check=True)
        if "error" in answer or not (folder / ARCHIVE).exists():
            return {**row, "export": answer.get("error", "no archive was written")}
    return {**row, "export": "", **judge_archive(folder / ARCHIVE, folder, engine_for(engine))}


if __name__ == "__main__":
    sys.exit(main())
