"""Compare what three exporters write of the architectures of the suite `models`, in the engine.

    python -m conformance.lab.measure.architectures --tract 0.21.19,0.23.9 --rows nets.jsonl
    python -m conformance.lab.measure.architectures --rows nets.jsonl --page docs/reference/speed/architectures.md

Each net is exported at the sizes of its example, and with its batch and the axes of the suite dynamic, by this
exporter, torch-to-nnef and torch.onnx, each in an environment of its own. What they write is loaded alone in a process
of the engine, for the times of loading and of the first run and for memory; what gives PyTorch's values then runs in
turns in one process, on one thread. A row is kept for each net, release and kind of sizes; an interrupted run goes on
where it ended. Times are ratios within one run: let the machine do nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conformance.lab.archives import time_in_process
from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.machine import ROOT
from conformance.lab.measure.architectures.page import comparison, plot
from conformance.lab.measure.peers.process import Worker
from conformance.lab.pages.tables import show
from conformance.lab.rows import RowFile, read_rows
from t2n_core.engine import ResolvedEngine, resolve_engines

EXPORT_SECONDS = 240.0
LOAD_SECONDS = 60.0
ENVIRONMENTS = {"torch-to-nnef": "torch-to-nnef-models", "torch-onnx": "torch-onnx-models"}
FILES = {"ours": "model.nnef.tar", "torch-to-nnef": "model.nnef.tgz", "torch-onnx": "model.onnx"}
"""Ours is not compressed, as that of torch.onnx is not: most of the time of loading would be that of gzip."""
SIZES = {"fixed": "", "free": "batch"}
"""Name of the sizes -> the axes that are dynamic, as a job of `peers.architectures` names them."""
_MARK = "<!-- table of architectures -->"


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.measure.architectures", __doc__)
    parser.add_argument("--rows", type=Path, required=True, metavar="FILE", help="where the rows are kept")
    parser.add_argument("--models", default="", metavar="TEXT", help="only architectures with one of these, by commas")
    parser.add_argument("--sizes", choices=[*SIZES, "both"], default="both")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each archive")
    parser.add_argument("--peers", type=Path, default=ROOT / ".tox" / "peers", help="where environments are made")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the tables into this page and a plot beside it, and do no more"
    )
    add_tract(parser, "0.21.19,0.23.9")
    options = parser.parse_args(arguments)
    if options.page is None:
        measure(options)
    rows = list(read_rows(options.rows))
    show(comparison(rows), _MARK, options.page)
    if options.page is not None:
        options.page.with_suffix(".svg").write_text(plot(rows), "utf-8")
    return 0


def measure(options: argparse.Namespace) -> None:
    """Add the rows that the file does not have yet."""
    from conformance.suites.test_models import CASES

    rows = RowFile(options.rows)
    done = {(row["name"], row["release"], row["sizes"]) for row in read_rows(options.rows)}
    names = [name for name in CASES if any(word in name for word in options.models.split(","))]
    kinds = list(SIZES) if options.sizes == "both" else [options.sizes]
    engines = resolve_engines(options.tract)
    workers = dict(_workers(options.peers.absolute()))
    for name, sizes in itertools.product(names, kinds):
        with tempfile.TemporaryDirectory() as scratch:
            exports = Exports(name, sizes, workers, Path(scratch))
            for engine in engines:
                if (name, engine.version, sizes) not in done:
                    say(f"{name}, {sizes} sizes, tract {engine.version}")
                    row = {"name": name, "release": engine.version, "sizes": sizes}
                    rows.add({**row, **compare(exports, engine, options.rounds)})
    for worker in workers.values():
        worker.close()


def _workers(environments: Path) -> Iterator[tuple[str, Worker]]:
    yield "ours", Worker("ours")
    for exporter, environment in ENVIRONMENTS.items():
        yield exporter, Worker.in_environment(exporter, environments, environment)


class Exports:
    """What each exporter writes of one architecture, for each release that it writes another file for."""

    def __init__(self, name: str, sizes: str, workers: Mapping[str, Worker], folder: Path) -> None:
        self.name, self.sizes, self.workers, self.folder = name, sizes, workers, folder
        self.arrays = folder / "arrays.npz"
        self.answers: dict[str, dict[str, Any]] = {}

    def of(self, exporter: str, release: str) -> tuple[Path, dict[str, Any]]:
        """Return the archive and the seconds of its export, or an error."""
        folder = self.folder / (exporter if exporter == "torch-onnx" else f"{exporter}-{release}")
        archive = folder / FILES[exporter]
        if folder.name not in self.answers:
            folder.mkdir()
            job = {"name": self.name, "release": release, "folder": str(folder), "file": archive.name}
            answer = self.workers[exporter].ask(
                "architectures", EXPORT_SECONDS, **job, axes=SIZES[self.sizes], check=False
            )
            if "error" not in answer and not archive.exists():
                answer = {"error": "no archive was written"}
            if not self.arrays.exists() and (folder / "outputs_0.npz").exists():
                save_arrays(folder, self.arrays)
            self.answers[folder.name] = answer
        return archive, self.answers[folder.name]


def compare(exports: Exports, engine: ResolvedEngine, rounds: int) -> dict[str, Any]:
    """Return {exporter: figures, or error}, and the milliseconds of PyTorch, for one architecture."""
    figures: dict[str, Any] = {}
    archives: dict[str, str] = {}
    for exporter in exports.workers:
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


def save_arrays(folder: Path, path: Path) -> None:
    """Save the first example as `time_in_process` reads it."""
    with np.load(folder / "inputs_0.npz") as inputs, np.load(folder / "outputs_0.npz") as outputs:
        named = {f"input{i}": inputs[key] for i, key in enumerate(inputs.files)}
        np.savez(path, **named, **{f"output{i}": outputs[key] for i, key in enumerate(outputs.files)})


if __name__ == "__main__":
    sys.exit(main())
