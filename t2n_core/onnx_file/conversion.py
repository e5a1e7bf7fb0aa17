"""ONNX models as NNEF archives, by the writer of the engine itself, each proven against the model's reference."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from t2n_core.engine.causes import deepest_first
from t2n_core.engine.protocol import Engine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import EngineOptimiseError
from t2n_core.nnef.archive import remove_archive, write_files
from t2n_core.onnx_file.samples import run_job
from t2n_core.onnx_file.writer_repairs import WRITER_REPAIRS
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.interface import interface_of
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest

_LACKING: Final = re.compile(r'No serializer found for node #\d+ ".*?" (\w+)')


@dataclass(frozen=True, slots=True)
class Conversion:
    """The outcomes of an ONNX model and of the archive that an engine wrote of it."""

    model: Outcome
    archive: Outcome | None
    """None if there is no archive: the engine does not compute the model's outputs."""


def convert(engine: TractEngine, request: CheckRequest, model: Outcome, target: Path) -> Conversion:
    """Write the ONNX model of a request as an archive, and check it at the same samples.

    `model` is the outcome of the request in the engine. The archive is written only if it passes, and is removed again
    if its own check does not. Raises EngineOptimiseError, with the engine's reason, if it cannot write the model.
    """
    if not model.passed:
        return Conversion(model, None)
    write_converted(engine, request.archive, target, request.timeout)
    outcome = check_archive(engine, request, target)
    if not outcome.passed:
        remove_archive(target)
    return Conversion(model, outcome)


def write_converted(engine: TractEngine, model: Path, target: Path, timeout: float = 60.0) -> None:
    """Write an ONNX model as an archive, after repairs for operators that the engine's writer lacks.

    `timeout` is in seconds. Raises EngineOptimiseError, with the engine's reason, if it cannot write the model.
    """
    with TemporaryDirectory() as scratch:
        folder = _write(engine, model, Path(scratch), timeout)
        files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        write_files(files, target)


def _write(engine: TractEngine, model: Path, scratch: Path, timeout: float) -> Path:
    """Return a folder with the archive that the engine writes."""
    source, tried = model, set[str]()
    while True:
        folder = scratch / f"archive_{len(tried)}"
        reply = engine.write(source, folder, timeout=timeout)
        if reply.status == "ok":
            return folder
        lacking = _LACKING.search(reply.message)
        name = lacking[1] if lacking is not None else ""
        if name not in WRITER_REPAIRS or name in tried:
            raise EngineOptimiseError(
                f"tract {engine.version} cannot write {model} as NNEF: {deepest_first(reply.message)}",
                hint="try another release, or export the model from PyTorch with `t2n export`",
            )
        tried.add(name)
        repaired = scratch / f"{name}.onnx"
        run_job(source, {"repair": name, "target": str(repaired), "missing": []}, [], lambda frame: None)
        source = repaired


def check_archive(engine: Engine, request: CheckRequest, archive: Path) -> Outcome:
    """Return the outcome of an archive in an engine at the samples of its ONNX model."""
    stated = interface_of(archive)
    declared = request.interface
    if declared is not None and stated is not None:  # the engine's writer names outputs by their nodes
        declared = replace(declared, outputs=stated.outputs)
    return check_parity(engine, replace(request, archive=archive, interface=declared))
