"""A tract command line over the library of a wheel, for tests of `specific_tract_binary_path`.

No wheel holds the command line. This program takes the flags that the source of tract's own (`cli/src/main.rs`) takes
in its version and refuses all others with status 2, logs the same lines, writes the same npz (float16 as float32, names
of nodes), and ends with the same statuses: 0, 1 for an error, that of a signal for a panic of the library.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path

import numpy as np
from packaging.version import Version

from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.errors import EngineError

REGISTRIES = {
    "nnef-tract-core": "0.19.2",
    "nnef-tract-onnx": "0.19.2",
    "nnef-tract-pulse": "0.19.2",
    "nnef-extended-identifier": "0.19.2",
    "nnef-tract-extra": "0.20.19",
    "nnef-tract-transformers": "0.21.13",
}
"""The first release that takes each flag."""


def make_cli(folder: Path, engine: ResolvedEngine, *, spoil: str = "") -> Path:
    """An executable in `folder` that is tract of that version; `spoil` is Python that may change `outputs`."""
    program = folder / "tract"
    paths = [path for path in sys.path if path]
    program.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path[:0] = {paths!r}\n"
        f"from tests.tract_cli import main\nmain({str(engine.library)!r}, {engine.version!r}, {spoil!r})\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def main(library: str, version: str, spoil: str) -> None:
    parser = _parser(version)
    options = parser.parse_args()  # status 2 for what this version does not take, as clap does
    _log('[INFO  tract] Model "graph" loaded')
    try:
        driver = TractDriver(Path(library))
        model = driver.load(Path(options.model))
        facts = model.facts()
        if options.set:
            model.set_symbols(
                {name: int(size) for name, _, size in (assignment.partition("=") for assignment in options.set)}
            )
        if options.stage == "declutter":
            model.declutter()
        runnable = model.into_runnable(optimise=options.optimise)
        _log("[INFO  tract] Model ready")
        bundle = np.load(options.input)
        outputs = runnable.run([_given(bundle, name, fact, options) for name, fact in facts["input"]])
    except EngineError as error:
        _log(f"[ERROR tract] {error}")
        sys.exit(1)
    names = [name for name, _ in facts["output"]]
    exec(spoil)
    float16 = [array.astype(np.float32) if array.dtype == np.float16 else array for array in outputs]
    np.savez(options.output, **dict(zip(names, float16, strict=False)))
    if not options.output.endswith(".npz"):
        os.replace(f"{options.output}.npz", options.output)


def _parser(version: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tract", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"tract {version}")
    parser.add_argument("model")
    parser.add_argument("-f", dest="format", choices=["nnef"], required=True)
    for flag, since in REGISTRIES.items():
        if Version(version) >= Version(since):
            parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--pass", dest="stage", choices=["load", "declutter"], default="")
    parser.add_argument("-O", dest="optimise", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    run = parser.add_subparsers(required=True).add_parser("run", allow_abbrev=False)
    run.add_argument("--input-from-bundle", dest="input", required=True)
    run.add_argument("--save-outputs", dest="output", required=True)
    run.add_argument("--allow-float-casts", dest="casts", action="store_true")
    return parser


def _given(bundle: np.lib.npyio.NpzFile, name: str, fact: str, options: argparse.Namespace) -> np.ndarray:
    array = bundle[name]
    wants_half = fact.lower().rstrip().endswith("f16")
    return array.astype(np.float16) if wants_half and options.casts and array.dtype == np.float32 else array


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
