"""Process that evaluates archives by the definitions of their operators, within the memory and the time of each job.

    python -m t2n_core.parity.evaluation.child

Frames of `wire.py` are read from descriptor 0 and written to the original descriptor 1.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from t2n_core import errors
from t2n_core.dialect.graphs.drawing import draw_evaluated
from t2n_core.dialect.graphs.evaluation import evaluate, sizes_of
from t2n_core.dialect.tensors import Tensor
from t2n_core.engine.processes.channel import claim_channel
from t2n_core.engine.processes.memory import limit_process
from t2n_core.engine.processes.wire import Frame, read_frame, write_frame
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError, MeaningError, T2NError
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.parity.evaluation.noise import Noise, with_noise

_NAMED: Final = (
    "BudgetError",
    "MeaningError",
    "MalformedArchiveError",
    "UndefinedOperatorError",
    "DrawError",
    "InputError",
    "SpecError",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a job, in types that JSON has."""

    kind: str
    message: str
    op: str = ""
    hint: str = ""
    statement: str = ""
    is_outside_of_domain: bool = False

    @classmethod
    def of(cls, wrong: Exception) -> Failure:
        """Return the failure of an exception."""
        if isinstance(wrong, MemoryError | RecursionError):
            limit = "memory" if isinstance(wrong, MemoryError) else "nesting"
            return cls("BudgetError", f"the archive takes more {limit} than one job may have")
        if not isinstance(wrong, T2NError):  # an error of a definition, which an archive of any kind may reach
            return cls("MeaningError", f"{type(wrong).__name__}: {wrong}")
        kind = next((one.__name__ for one in type(wrong).__mro__ if one.__name__ in _NAMED), "MeaningError")
        op, hint = wrong.op or "", wrong.hint or ""
        if not isinstance(wrong, MeaningError):
            return cls(kind, wrong.message, op, hint)
        return cls(kind, wrong.message, op, hint, wrong.statement, wrong.is_outside_of_domain)

    def error(self) -> T2NError:
        """Return the exception, one of `InputError` and `MeaningError` with their subclasses."""
        kind = getattr(errors, self.kind)
        if issubclass(kind, MeaningError):
            found: T2NError = kind(
                self.message,
                op=self.op or None,
                statement=self.statement,
                is_outside_of_domain=self.is_outside_of_domain,
            )
            found.hint = self.hint or None
            return found
        invalid = kind if issubclass(kind, InputError) else InputError
        return invalid(self.message, op=self.op or None, hint=self.hint or None)


def main() -> int:
    """Answer the jobs on the standard input until it ends."""
    requests, channel = claim_channel()
    write_frame(channel, {"event": "ready"})
    with contextlib.suppress(BrokenPipeError):
        while (job := read_frame(requests)) is not None:
            end: dict[str, Any] = {"event": "end"}
            limit_process(job.header["memory"])
            try:
                for header, arrays in _answers(job):
                    write_frame(channel, header, arrays)
            except BrokenPipeError:
                raise
            except Exception as wrong:
                end["failure"] = asdict(Failure.of(wrong))
            write_frame(channel, end)
    return 0


def _answers(job: Frame) -> Iterator[tuple[dict[str, Any], list[Array]]]:
    """Yield the header and the arrays of each sample, floats of its results in float64."""
    start = time.monotonic()
    content = read_archive(Path(job.header["archive"]))
    if job.header["noise"] is not None:
        noise = Noise(*job.header["noise"])
        random = np.random.default_rng(noise.seed)
        tensors = {label: with_noise(array, noise.ulps, random) for label, array in content.tensors.items()}
        content = replace(content, tensors=tensors)
    counts, memory = job.header["counts"], job.header["memory"]
    end: float = start + job.header["seconds"]
    standard, options = job.header["standard"], job.header["options"]
    arrays = iter(job.arrays())
    given = [tuple(next(arrays) for _ in range(count)) for count in counts]

    def seconds_left() -> float:
        return max(0.0, end - time.monotonic())

    def sample(
        inputs: Sequence[Array], outputs: Mapping[str, Any], shown: Sequence[Array]
    ) -> tuple[dict[str, Any], list[Array]]:
        results = {name: value for name, value in outputs.items() if isinstance(value, Tensor)}
        header = {
            "event": "sample",
            "inputs": len(shown),
            "sizes": sizes_of(content, inputs),
            "results": {name: one.dtype.str for name, one in results.items()},
        }
        return header, [np.asarray(array) for array in (*shown, *(one.array for one in results.values()))]

    for inputs in given:
        outputs = evaluate(content, inputs, timeout=seconds_left(), memory=memory, standard=standard, **options)
        yield sample(inputs, outputs, ())
    if not given:
        for drawn, outputs in draw_evaluated(content, standard=standard, timeout=seconds_left(), memory=memory):
            inputs = tuple(drawn.values())
            yield sample(inputs, outputs, inputs)


if __name__ == "__main__":
    sys.exit(main())
