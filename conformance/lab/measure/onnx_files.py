"""Compare archives with the files of torch.onnx in the engine: bytes, time until ready, time of a run, accuracy.

    python -m conformance.lab.measure.onnx_files --page docs/how-to/moving/from-torch-onnx.md

The nets are architectures of the suite `models` with a dynamic batch. Both export in processes of this environment,
which needs onnxscript. Each file is loaded alone in a process of the engine, on one thread; then they run in turns in
one. All times are CPU time. An error is the largest absolute difference from PyTorch's outputs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.lab.archives import time_in_process
from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.measure.architectures.exports import SECONDS, save_arrays
from conformance.lab.measure.peers.process import Worker
from conformance.lab.pages.tables import figures_table, show
from t2n_core.engine import ResolvedEngine, resolve_engines

NETS = (
    *("torchvision-resnet18", "torchvision-mobilenet_v3_small", "torchvision-convnext", "torchaudio-conv_tasnet"),
    *("transformers-bert", "transformers-llama"),
)
FILES = {".tgz": ("ours", "model.nnef.tgz"), ".tar": ("ours", "model.nnef.tar"), ".onnx": ("torch-onnx", "model.onnx")}
"""Name of a file -> who exports it, and what it is called."""
_MARK = "<!-- table of files -->"
_HEAD = (
    *("net", "kB, .tgz", ".tar", ".onnx", "ready, ms, .tgz", ".tar", ".onnx"),
    *("run, ms, NNEF", "ONNX", "error, NNEF", "ONNX"),
)

Row = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.measure.onnx_files", __doc__)
    parser.add_argument("--nets", default=",".join(NETS), metavar="NAMES", help="architectures, by commas")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table into this page")
    add_tract(parser, "latest")
    options = parser.parse_args(arguments)
    (engine,) = resolve_engines(options.tract)
    show(table_of(measure(engine, options)), _MARK, options.page)
    return 0


def measure(engine: ResolvedEngine, options: argparse.Namespace) -> list[Row]:
    """Return the figures of each net, by file."""
    workers = {exporter: Worker(exporter) for exporter, _ in FILES.values()}
    rows = []
    for net in options.nets.split(","):
        say(net)
        with tempfile.TemporaryDirectory() as scratch:
            paths = {name: _export(net, engine, workers[who], Path(scratch, name), file)
                     for name, (who, file) in FILES.items()}  # fmt: skip
            rows.append({"net": net} | figures(net, engine, paths, options.rounds))
    for worker in workers.values():
        worker.close()
    return rows


def _export(net: str, engine: ResolvedEngine, worker: Worker, folder: Path, file: str) -> Path:
    """Return the file of a net, next to its arrays. Raises RuntimeError if none is written."""
    folder.mkdir()
    job = {"name": net, "release": engine.version, "folder": str(folder), "file": file, "axes": "batch"}
    answer = worker.ask("architectures", SECONDS, **job, check=False)
    if "error" in answer:
        raise RuntimeError(f"{net}, {file}: {answer['error']}")
    save_arrays(folder, folder / "arrays.npz")
    return folder / file


def figures(net: str, engine: ResolvedEngine, paths: Mapping[str, Path], rounds: int) -> Row:
    """Return by file its bytes, milliseconds until it is ready and of a run, and error; of a refused one the bytes."""

    def timed(some: Mapping[str, Path], turns: int) -> Row:
        arrays = next(iter(paths.values())).with_name("arrays.npz")
        files = {name: str(path) for name, path in some.items()}
        (answer,) = time_in_process(engine, [{"name": net, "arrays": str(arrays), "archives": files}], turns)
        refused = {name: entry["error"] for name, entry in answer["archives"].items() if "error" in entry}
        for name, why in refused.items():
            say(f"{net}{name}: {why}")
        return {name: entry for name, entry in answer["archives"].items() if name not in refused}

    alone = {name: entry for name, path in paths.items() for entry in timed({name: path}, 1).values()}
    together = timed({name: paths[name] for name in alone}, rounds)
    sizes = {name: {"bytes": path.stat().st_size} for name, path in paths.items()}
    for name, entry in together.items():
        sizes[name] |= {"ready": alone[name]["load_ms"], "run": entry["least_cpu_ms"], "error": entry["max_abs"]}
    return sizes


def table_of(rows: Sequence[Row]) -> str:
    """Return the table of Markdown; a run and an error are the same for both kinds of archive."""

    def cells(row: Row, names: Sequence[str], figure: str, form: str, divisor: float = 1) -> list[str]:
        values = [row[name].get(figure) for name in names]
        return ["refused" if value is None else format(value / divisor, form) for value in values]

    both = (".tar", ".onnx")
    return figures_table(_HEAD, [
        (
            f"`{row['net']}`", *cells(row, [*FILES], "bytes", ",.0f", 1000), *cells(row, [*FILES], "ready", ".0f"),
            *cells(row, both, "run", ".2f"), *cells(row, both, "error", ".1e"),
        )
        for row in rows
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
