"""Compare three exporters' files of the architectures of the suite `models`, in the engine.

    python -m conformance.lab.measure.architectures --rows docs/reference/speed/architectures.jsonl.gz \
        --page docs/reference/speed/architectures.md

Each net is exported at its example's sizes, and with its batch and the suite's axes dynamic, by this exporter,
torch-to-nnef and torch.onnx, each in a separate environment. Each file is loaded alone in a process of the engine, for
the times of loading and of the first run and for memory; files that give PyTorch's values then run in turns in one
process, on one thread. A row is kept for each net, release and kind of sizes; an interrupted run resumes where it
stopped, also on another day: delete the file of rows to measure all nets again. Times are ratios within one run: keep
the machine otherwise idle.

All files are written, and kept, before the first is timed. Without `--rows` nothing is timed, so that the other
exporters' files (`--exporters torch-to-nnef,torch-onnx`) can be written once, on a busy machine.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.lab.archives import time_in_process
from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.machine import ROOT, describe_machine
from conformance.lab.measure.architectures.exports import AXES, FILES, Exports, make_workers
from conformance.lab.measure.architectures.page import comparison, plot
from conformance.lab.pages.tables import show
from conformance.lab.rows import RowFile, read_rows
from t2n_core.engine import ResolvedEngine, resolve_engines

LOAD_SECONDS = 60.0
_MARK = "<!-- table of architectures -->"


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.measure.architectures", __doc__)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="where rows are kept; without it nothing is timed")
    parser.add_argument("--archives", type=Path, default=ROOT / "build" / "architectures", metavar="FOLDER")
    parser.add_argument("--exporters", default=",".join(FILES), metavar="NAMES", help="whose files are written")
    parser.add_argument("--models", default="", metavar="TEXT", help="only architectures with one of these, by commas")
    parser.add_argument("--sizes", choices=[*AXES, "both"], default="both")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each archive")
    parser.add_argument("--peers", type=Path, default=ROOT / ".tox" / "peers", help="where environments are made")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables into this page, a plot beside it")
    add_tract(parser, "0.21,0.23")
    options = parser.parse_args(arguments)
    engines = resolve_engines(options.tract)
    exports = write_exports(options, [engine.version for engine in engines])
    if options.rows is not None:
        measure(options.rows, exports, engines, options.rounds)
        rows = list(read_rows(options.rows))
        show(comparison(rows), _MARK, options.page)
        if options.page is not None:
            options.page.with_suffix(".svg").write_text(plot(rows), "utf-8")
    return 0


def write_exports(options: argparse.Namespace, releases: Sequence[str]) -> list[Exports]:
    """Return the files of each architecture and kind of sizes, and write missing ones."""
    from conformance.suites.test_models import CASES

    workers = make_workers(options.exporters.split(","), options.peers.absolute())
    names = [name for name in CASES if any(word in name for word in options.models.split(","))]
    kinds = list(AXES) if options.sizes == "both" else [options.sizes]
    written = []
    for name, sizes in itertools.product(names, kinds):
        say(f"exports of {name}, {sizes} sizes")
        written.append(Exports(name, sizes, workers, options.archives.absolute()))
        for exporter, release in itertools.product(workers, releases):
            written[-1].of(exporter, release)
    for worker in workers.values():
        worker.close()
    return written


def measure(path: Path, exports: Sequence[Exports], engines: Sequence[ResolvedEngine], rounds: int) -> None:
    """Add the rows that the file does not have yet."""
    rows = RowFile(path)
    done = {(row["name"], row["release"], row["sizes"]) for row in read_rows(path)}
    for case, engine in itertools.product(exports, engines):
        if (case.name, engine.version, case.sizes) not in done:
            say(f"{case.name}, {case.sizes} sizes, tract {engine.version}")
            row = {
                "name": case.name,
                "release": engine.version,
                "sizes": case.sizes,
                "date": describe_machine()["date"],
            }
            rows.add({**row, **compare(case, engine, rounds)})


def compare(exports: Exports, engine: ResolvedEngine, rounds: int) -> dict[str, Any]:
    """Return {exporter: figures, or error}, and the milliseconds of PyTorch, for one architecture."""
    figures: dict[str, Any] = {}
    archives: dict[str, str] = {}
    for exporter in FILES:
        archive, answer = exports.of(exporter, engine.version)
        if "error" in answer:
            figures[exporter] = {"error": answer["error"]}
            continue
        alone = _time(engine, _case(exports, {exporter: str(archive)}), 1)
        timed = alone["archives"].get(exporter, {"error": alone.get("died", "the process ended")})
        memory = {"bytes": archive.stat().st_size, "peak_bytes": alone.get("peak_bytes")}
        figures[exporter] = {"export_seconds": answer["seconds"], **memory, **timed}
        if "torch_ms" in answer:
            figures["torch_ms"] = answer["torch_ms"]
        if "error" not in timed:
            archives[exporter] = str(archive)
    together = _time(engine, _case(exports, archives), rounds)
    for exporter, timed in together["archives"].items():
        figures[exporter] |= {key: timed[key] for key in ("least_cpu_ms", "turns_ms", "runs") if key in timed}
    return figures


def _case(exports: Exports, archives: Mapping[str, str]) -> dict[str, Any]:
    """Return a case of `time_in_process`."""
    return {"name": exports.name, "arrays": str(exports.arrays), "archives": dict(archives)}


def _time(engine: ResolvedEngine, case: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return the answer of an engine's process, with an error for each archive where it takes too long."""
    limit = LOAD_SECONDS * max(1, len(case["archives"]))
    try:
        return time_in_process(engine, [case], rounds, limit)[-1]
    except subprocess.TimeoutExpired:
        error = {"error": f"neither loaded nor ran within {limit:.0f} s"}
        return {"archives": dict.fromkeys(case["archives"], error)}


if __name__ == "__main__":
    sys.exit(main())
