"""The process that evaluates archives by the definitions of their operators, and what it answers.

A small archive can ask for more memory and time than any machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from t2n_core.dialect.tensors import Tensor
from t2n_core.engine.processes.jobs import JobProcess
from t2n_core.engine.processes.wire import Frame
from t2n_core.parity.evaluation import child
from t2n_core.parity.evaluation.noise import Noise
from t2n_core.parity.samples import Array, Sample

SECONDS: Final = 60.0
"""Most seconds of all samples of an archive."""
_GRACE: Final = 5.0
"""Seconds beyond these for an operation that has begun, which is then ended without its name."""


class Evaluator(JobProcess):
    """A process that evaluates archives."""

    def __init__(self) -> None:
        super().__init__(child.__name__)

    @staticmethod
    def shared() -> Evaluator:
        """Return the evaluator of this process; a forked process has its own."""
        return _shared

    def evaluate(
        self,
        archive: Path,
        inputs: Sequence[Array],
        *,
        results: Sequence[str] | None = None,
        standard: bool = False,
        seconds: float = SECONDS,
        noise: Noise | None = None,
    ) -> dict[str, Tensor]:
        """Return what `dialect.evaluate` does; of `results`, only the tensors. Raises its errors."""
        evaluated: list[dict[str, Tensor]] = []
        options = {"results": None if results is None else list(results)}
        job = _job(archive, [inputs], options, seconds=seconds, standard=standard, noise=noise)
        self._evaluate(job, [inputs], lambda frame: evaluated.append(_results(frame)))
        return evaluated[0]

    def samples(
        self,
        archive: Path,
        user_inputs: Sequence[tuple[Array, ...]] = (),
        *,
        standard: bool = False,
        round_to_storage: bool = False,
        seconds: float = SECONDS,
        drawing: Mapping[str, Any] | None = None,
    ) -> list[Sample]:
        """Return a sample for each set of inputs, or for drawn ones, with options as in `dialect.evaluate`.

        `drawing` has the `count` and the `sizes` of `dialect.graphs.drawing.draw_evaluated`.

        Raises BudgetError, with the statement where it is known, for an archive that takes more than `seconds` or the
        memory of a job, and the errors of `dialect.draw_inputs` and `dialect.evaluate`.
        """
        samples: list[Sample] = []

        def take(frame: Frame) -> None:
            inputs = user_inputs[len(samples)] if user_inputs else tuple(frame.arrays()[: frame.header["inputs"]])
            outputs = tuple(tensor.raw() for tensor in _results(frame).values())
            samples.append(Sample(inputs, outputs, frame.header["sizes"]))

        options = {"round_to_storage": round_to_storage}
        job = _job(archive, user_inputs, options, seconds=seconds, standard=standard)
        self._evaluate({**job, "drawing": dict(drawing or {})}, user_inputs, take)
        return samples

    def _evaluate(self, job: dict[str, Any], batches: Sequence[Sequence[Array]], take: Callable[[Frame], None]) -> None:
        arrays = [array for inputs in batches for array in inputs]
        self.work(job, arrays, take, what="the evaluation", seconds=job["seconds"], grace=_GRACE)


def _job(
    archive: Path,
    batches: Sequence[Sequence[Array]],
    options: Mapping[str, Any],
    *,
    seconds: float,
    standard: bool,
    noise: Noise | None = None,
) -> dict[str, Any]:
    """Return the header of a job, whose `options` are passed to `dialect.evaluate`."""
    return {
        "archive": str(archive.absolute()),
        "counts": [len(inputs) for inputs in batches],
        "standard": standard,
        "options": options,
        "seconds": seconds,
        "noise": noise,
    }


def _results(frame: Frame) -> dict[str, Tensor]:
    arrays = frame.arrays()[frame.header["inputs"] :]
    types = frame.header["results"]
    return {name: Tensor(array, np.dtype(types[name])) for name, array in zip(types, arrays, strict=True)}


_shared: Final = Evaluator()
