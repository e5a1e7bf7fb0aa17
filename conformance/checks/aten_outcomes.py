"""What became of the samples of one operator in one engine, in built-in types, and what that makes of the operator."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t2n_core.errors import T2NError
from t2n_core.level import LEVELS
from t2n_core.parity.outcome import Outcome, Stage, Status

PASS, REFUSED, BUG, WRONG, ERROR, CRASH, TIMEOUT = (
    "pass",
    "refused",
    "exporter bug",
    "silently wrong",
    "engine error",
    "engine crash",
    "timeout",
)
RESULTS = (PASS, REFUSED, BUG, WRONG, ERROR, CRASH, TIMEOUT)
"""In the order of the tables. `refused` is a T2NError before the archive is written, `exporter bug` any other exception
there; `timeout` also stands for what ran out of memory."""
COMPLETE, PARTLY, ALL_REFUSED, ALL_FAILED, NO_SAMPLE = "complete", "partly", "refused", "failed", "no usable sample"
DYNAMIC = "dynamic"
"""The kind of the cases of suite `aten_dynamic`."""
PROPERTY = "aten"
SECONDS_TO_EXPORT = 120
_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class SampleLine:
    """One sample in one engine."""

    id: str
    result: str
    stage: str = ""
    level: str = ""
    message: str = ""
    op: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class CaseLine:
    """One operator in one dtype in one engine."""

    case: str
    kind: str
    operator: str
    dtype: str
    engine: str
    samples: tuple[SampleLine, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> samples that are not usable."""
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """`complete` only if every usable sample passes."""
        results = {s.result for s in self.samples}
        if not results:
            return NO_SAMPLE
        if results == {PASS}:
            return COMPLETE
        if PASS in results:
            return PARTLY
        return ALL_REFUSED if results == {REFUSED} else ALL_FAILED

    @property
    def level(self) -> str:
        """The loosest level that a passing sample needed."""
        order = [level.value for level in LEVELS]
        return max((s.level for s in self.samples if s.level in order), key=order.index, default="")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> CaseLine:
        fields = json.loads(text)
        return cls(**{**fields, "samples": tuple(SampleLine(**s) for s in fields["samples"])})


def case_line(
    case: Any, kind: str, engine: str, samples: Sequence[SampleLine], left_out: Mapping[str, int], seconds: float
) -> CaseLine:
    """Return the line of an `AtenCase` in one engine."""
    case_id = f"{DYNAMIC}.{case.id}" if kind == DYNAMIC else case.id
    return CaseLine(case_id, kind, case.name, case.dtype, engine, tuple(samples), left_out, round(seconds, 3))


def read_lines(path: Path) -> list[CaseLine]:
    """Return the lines of a file, the last of each case and engine."""
    lines = (CaseLine.from_json(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return list({(line.case, line.engine): line for line in lines}.values())


def sample_line(sample_id: str, outcome: Outcome) -> SampleLine:
    """Return an outcome as a line of JSON."""
    error = outcome.error
    if outcome.passed or error is None:
        level = outcome.level.value if outcome.level else ""
        return SampleLine(sample_id, PASS if outcome.passed else ERROR, outcome.stage.value, level)
    message = error.message if outcome.status is not Status.MISMATCH else f"{error.message}: {_worst(outcome)}"
    return SampleLine(
        sample_id,
        result_of(outcome),
        outcome.stage.value,
        outcome.level.value if outcome.level else "",
        message[:_MESSAGE],
        error.op,
        error.fingerprint,
    )


def result_of(outcome: Outcome) -> str:
    """Return which of RESULTS an outcome is."""
    match outcome.status:
        case Status.PASS | Status.WEAK:
            return PASS
        case Status.MISMATCH:
            return WRONG
        case Status.CRASH:
            return CRASH
        case Status.TIMEOUT | Status.OOM:
            return TIMEOUT
    if isinstance(outcome.cause, TimeoutError):
        return TIMEOUT
    exporting = outcome.stage in (Stage.SETUP, Stage.INPUT, Stage.CAPTURE, Stage.LOWER, Stage.SPEC, Stage.WRITE)
    if exporting:
        return REFUSED if isinstance(outcome.cause, T2NError) else BUG
    return ERROR


def _worst(outcome: Outcome) -> str:
    bad = [o for o in outcome.outputs if not o.passed]
    messages = [o.problem or f"{o.worst_actual} for {o.worst_expected} at {list(o.worst_index or ())}" for o in bad]
    return "; ".join(messages[:3])


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """TimeoutError in what takes longer; only the main thread of a POSIX system can be interrupted like this."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not exported within {seconds} s")

    try:
        before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, stop)
    except (AttributeError, ValueError):
        yield
        return
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def count_results(lines: Sequence[CaseLine]) -> Counter[str]:
    return Counter(sample.result for line in lines for sample in line.samples)


def count_verdicts(lines: Sequence[CaseLine]) -> Counter[str]:
    return Counter(line.verdict for line in lines)
