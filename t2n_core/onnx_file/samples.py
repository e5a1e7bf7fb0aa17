"""Samples of an ONNX model, whose outputs a reference computes in a separate process, and a check against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from t2n_core.engine.processes.jobs import JobProcess
from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Engine
from t2n_core.errors import T2NError
from t2n_core.onnx_file import child
from t2n_core.onnx_file.references import REFERENCES, STANDARD
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample

SECONDS: Final = 120.0
"""Most seconds of all samples of a model."""
_PROCESS: Final = JobProcess(child.__name__)
JUDGED_BY: Final = "onnx_reference"
"""Fact of an outcome: the reference with which the engine agrees where the references differ."""


@dataclass(frozen=True, slots=True)
class OnnxSamples:
    """Samples, and the reference that computed their outputs."""

    samples: list[Sample]
    reference: str


def reference_samples(
    path: Path,
    user_inputs: Sequence[tuple[Array, ...]] = (),
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    *,
    references: Sequence[str] = REFERENCES,
    seconds: float = SECONDS,
) -> OnnxSamples:
    """Return a sample for each set of inputs, or for drawn ones, by the first of the references that computes all.

    `sizes` fixes dynamic dimensions of drawn inputs, or has a list of the least size. Raises InputError if the file
    cannot be read, or no inputs can be drawn; MeaningError if no reference computes the outputs, and BudgetError if
    they take too much time or memory.
    """
    samples: list[Sample] = []
    names: list[str] = []

    def take(frame: Frame) -> None:
        arrays, count = frame.arrays(), frame.header["inputs"]
        samples.append(Sample(tuple(arrays[:count]), tuple(arrays[count:]), frame.header["sizes"]))
        names.append(frame.header["by"])

    job = {
        "counts": [len(inputs) for inputs in user_inputs],
        "sizes": dict(sizes or {}),
        "references": list(references),
        "seconds": seconds,
    }
    run_job(path, job, [array for inputs in user_inputs for array in inputs], take, seconds)
    return OnnxSamples(samples, names[0])


def run_job(
    path: Path, job: Mapping[str, Any], arrays: Sequence[Array], take: Callable[[Frame], None], seconds: float = SECONDS
) -> None:
    """Do a job of `child` for a model, and pass its events to `take`.

    Raises the job's error, BudgetError if it takes too long, and MeaningError if the process ends without an answer.
    """
    description = f"the repair of {path}" if "repair" in job else f"the reference of {path}"
    _PROCESS.work({**job, "path": str(path.absolute())}, arrays, take, what=description, seconds=seconds)


def check_by_references(engine: Engine, request: CheckRequest) -> Outcome:
    """Return the outcome of samples of `reference_samples`, whose reference the request names.

    Where the engine differs from onnxruntime and agrees with ONNX's own evaluator, the references differ: the pass is
    weak, since one of them is wrong.
    """
    outcome = check_parity(engine, request)
    if outcome.status is not Status.MISMATCH or request.reference == STANDARD:
        return outcome
    try:
        input_sets = [sample.inputs for sample in request.samples]
        other = reference_samples(request.archive, input_sets, references=[STANDARD])
    except T2NError:
        return outcome
    second = check_parity(engine, replace(request, samples=other.samples, reference=STANDARD))
    if not second.passed:
        return outcome
    message = f"{request.reference} and {STANDARD} compute different outputs, and the engine agrees with {STANDARD}"
    error = ErrorInfo.of(Stage.COMPARE, "WeakCheck", message)
    return replace(second, status=Status.WEAK, error=error, facts={**second.facts, JUDGED_BY: STANDARD})
