"""Samples of an archive by the definitions of its operators, computed in a process with limits.

A small archive can ask for more memory and time than any machine has.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from t2n_core import dialect, errors
from t2n_core.dialect.graphs.evaluation import sizes_of
from t2n_core.engine.processes.channel import claim_channel
from t2n_core.engine.processes.death import explain_death
from t2n_core.engine.processes.memory import limit_process, memory_limit
from t2n_core.engine.processes.wire import Frame, read_frame, write_frame
from t2n_core.engine.processes.worker_process import WorkerDied, WorkerProcess
from t2n_core.errors import InputError, MeaningError, T2NError
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.parity.samples import Array, Sample

SECONDS: Final = 60.0
"""Most seconds of all samples of an archive."""
_GRACE: Final = 5.0
"""Seconds beyond these for an operation that has begun, which is then ended without its name."""
_NAMED: Final = (
    "BudgetError",
    "MeaningError",
    "MalformedArchiveError",
    "UndefinedOperatorError",
    "InputError",
    "SpecError",
)


@dataclass(frozen=True, slots=True)
class _Failure:
    kind: str
    message: str
    op: str = ""
    hint: str = ""
    statement: str = ""


def evaluated_samples(
    archive: Path,
    given: Sequence[tuple[Array, ...]] = (),
    *,
    standard: bool = False,
    round_to_storage: bool = False,
    seconds: float = SECONDS,
) -> list[Sample]:
    """Return a sample for each set of inputs, or for drawn ones if none are given; the options are those of `evaluate`.

    Raises BudgetError, with the statement where it is known, for an archive that takes more than `seconds` or the
    memory of a job, and the errors of `dialect.draw_inputs` and `dialect.evaluate`.
    """
    worker = WorkerProcess("t2n_core.parity.evaluated", f"--memory={memory_limit()}")
    try:
        worker.wait_ready()
        counts = [len(one) for one in given]
        options = {"standard": standard, "round_to_storage": round_to_storage}
        header = {"archive": str(archive.absolute()), "counts": counts, "options": options, "seconds": seconds}
        found: list[Sample] = []

        def take(frame: Frame) -> None:
            arrays, count = frame.arrays(), frame.header["inputs"]
            inputs = given[len(found)] if given else tuple(arrays[:count])
            found.append(Sample(inputs, tuple(arrays[count:]), frame.header["sizes"]))

        sent = [array for one in given for array in one]
        end = worker.converse(header, sent, timeout=seconds + _GRACE, on_event=take)
    except WorkerDied as died:
        death = explain_death(died.exit_code, died.stderr, killed_by_us=died.killed_by_us)
        raise MeaningError(
            f"the outputs by the definitions of the operators cannot be computed: {death.message}"
        ) from None
    finally:
        worker.close()
    if (failure := end.header.get("failure")) is not None:
        raise _error_of(_Failure(**failure))
    return found


def main(arguments: Sequence[str]) -> int:
    """Answer the jobs on the standard input until it ends."""
    requests, channel = claim_channel()
    memory = int(arguments[0].removeprefix("--memory="))
    limit_process(memory)
    write_frame(channel, {"event": "ready"})
    with contextlib.suppress(BrokenPipeError):
        while (job := read_frame(requests)) is not None:
            end: dict[str, Any] = {"event": "end"}
            try:
                _answer(job, channel, memory)
            except (T2NError, MemoryError, RecursionError) as wrong:
                end["failure"] = asdict(_failure_of(wrong))
            write_frame(channel, end)
    return 0


def _answer(job: Frame, channel: Any, memory: int) -> None:
    content = read_archive(Path(job.header["archive"]))
    arrays = iter(job.arrays())
    given = [tuple(next(arrays) for _ in range(count)) for count in job.header["counts"]]
    seconds, options = job.header["seconds"], job.header["options"]
    end = time.monotonic() + seconds
    standard = options["standard"]
    drawn = () if given else dialect.draw_inputs(content, standard=standard, timeout=seconds, memory=memory)
    for one in given or [tuple(inputs.values()) for inputs in drawn]:
        left = max(0.0, end - time.monotonic())
        outputs = dialect.evaluate(content, one, timeout=left, memory=memory, **options)
        found = [*one, *(tensor.raw() for tensor in outputs.values())]
        header = {"event": "sample", "inputs": len(one), "sizes": sizes_of(content, one)}
        write_frame(channel, header, [np.asarray(array) for array in found])


def _failure_of(wrong: Exception) -> _Failure:
    if not isinstance(wrong, T2NError):
        limit = "memory" if isinstance(wrong, MemoryError) else "nesting"
        return _Failure("BudgetError", f"the archive takes more {limit} than one job may have")
    kind = next((one.__name__ for one in type(wrong).__mro__ if one.__name__ in _NAMED), "MeaningError")
    statement = wrong.statement if isinstance(wrong, MeaningError) else ""
    return _Failure(kind, wrong.message, wrong.op or "", wrong.hint or "", statement)


def _error_of(failure: _Failure) -> T2NError:
    kind = getattr(errors, failure.kind)
    if issubclass(kind, MeaningError):
        found: T2NError = kind(failure.message, op=failure.op or None, statement=failure.statement)
        found.hint = failure.hint or None
        return found
    return InputError(failure.message, op=failure.op or None, hint=failure.hint or None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
