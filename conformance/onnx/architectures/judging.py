"""The judgement of torch.onnx's file of an architecture: by the file's own reference, and by PyTorch's outputs."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from conformance.lab.measure.peers.architectures import read_examples
from conformance.lab.measure.peers.process import Worker
from t2n_core.check.file import CheckedFile, check_file, file_request, open_checked, outcome_without_samples
from t2n_core.engine.protocol import Array, Engine
from t2n_core.errors import DrawError, MeaningError, T2NError
from t2n_core.onnx_file.refusals import REFUSAL
from t2n_core.onnx_file.repaired import search_repairs
from t2n_core.onnx_file.samples import reference_samples
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest

FILE: Final = "model.onnx"
_EXPORT_SECONDS: Final = 240.0
_ENGINE_SECONDS: Final = 60.0
_LONGEST: Final = 300
"""Most characters of a reason."""
_TARGET: Final = "tract"
Arrays = tuple[Array, ...]
Json = dict[str, Any]


def export(worker: Worker, name: str, folder: Path, *, free: bool) -> Json:
    """Write the file of an architecture and its examples, and return a row.

    `free` is whether the suite has dynamic axes for it; they are fixed if the export with them fails.
    """
    row: Json = {}
    for sizes, axes in (("free", "suite"), ("fixed", ""))[not free :]:
        shutil.rmtree(folder, ignore_errors=True)  # of an export that failed
        folder.mkdir(parents=True)
        job = {"name": name, "release": "", "folder": str(folder), "file": FILE, "check": False, "larger": True}
        answer = worker.ask("architectures", _EXPORT_SECONDS, **job, axes=axes)
        if "error" not in answer:
            return {**row, "sizes": sizes, "seconds": answer["seconds"], "bytes": (folder / FILE).stat().st_size}
        row[f"{sizes}_error"] = answer["error"]
    return {**row, "sizes": ""}


def judge(folder: Path, engine: Engine) -> Json:
    """Return the verdicts on the file in a folder, and whether it is what PyTorch computes.

    `reference` is the verdict of `t2n check` without further arguments, at drawn inputs; `pytorch` the one at the
    examples, where PyTorch's outputs are expected; `file` how the outputs of the file's reference differ from these.
    """
    file = open_checked(folder / FILE, {})
    inputs, expected = read_examples(folder, file.names[0])
    return {
        "reference": _verdict(file, engine, [], []),
        "pytorch": _verdict(file, engine, inputs, expected),
        "file": _difference(file, inputs, expected),
    }


def repair(folder: Path, engine: Engine) -> Json:
    """Return the verdict on the file after the repairs of `t2n check --repair`, and these repairs."""
    file = open_checked(folder / FILE, {})

    def check(request: CheckRequest) -> list[Outcome]:
        return [check_file(file, engine, _TARGET, request)]

    try:
        request = file_request(file, [], [], _TARGET, Judgement(), _ENGINE_SECONDS)
        with TemporaryDirectory() as scratch:
            repaired = search_repairs(request, check, check(request), Path(scratch))
    except T2NError as wrong:
        return _unjudged(wrong)
    return {**_row(repaired.outcomes[0]), "repairs": repaired.repairs}


def _verdict(file: CheckedFile, engine: Engine, inputs: list[Arrays], expected: list[Arrays]) -> Json:
    began = time.perf_counter()
    try:
        request = file_request(file, inputs, expected, _TARGET, Judgement(), _ENGINE_SECONDS)
        row = {**_row(check_file(file, engine, _TARGET, request)), "by": request.reference}
    except (DrawError, MeaningError) as wrong:
        outcome = outcome_without_samples(file, engine, _TARGET, wrong, _ENGINE_SECONDS)
        row = _unjudged(wrong) if outcome.cause is wrong else _row(outcome)
    return {**row, "seconds": round(time.perf_counter() - began, 2)}


def _row(outcome: Outcome) -> Json:
    row: Json = {"status": outcome.status.value, "stage": outcome.stage.value}
    row["level"] = outcome.level.value if outcome.level else ""
    row["off"] = max((output.max_abs for output in outcome.outputs), default=0.0)
    row["sizes"] = [dict(sizes) for sizes in outcome.sizes]
    if outcome.error is not None:
        row["op"], row["refusal"] = outcome.error.op, outcome.facts.get(REFUSAL, "")
        row["reason"], row["hint"] = outcome.error.message[:_LONGEST], outcome.error.hint[:_LONGEST]
    return row


def _unjudged(wrong: T2NError) -> Json:
    return {"status": "", "stage": "input", "reason": f"{type(wrong).__name__}: {wrong.message}"[:_LONGEST]}


def _difference(file: CheckedFile, inputs: list[Arrays], expected: list[Arrays]) -> Json:
    try:
        computed = reference_samples(file.path, inputs)
    except T2NError as wrong:
        return _unjudged(wrong)
    differing = []
    for outputs, sample in zip(expected, computed.samples, strict=True):
        compared = compare_outputs(outputs, sample.expected, names=file.names[1])
        differing += [
            f"{output.name}: {output.problem or f'{output.max_abs:.3g} off'}"
            for output in compared
            if not output.passed
        ]
    return {"by": computed.reference, "differs": "; ".join(differing)[:_LONGEST]}
