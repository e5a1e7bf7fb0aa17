"""The outcome of one cell: its last stage, the comparison of its outputs, and why it failed."""

from __future__ import annotations

import hashlib
import math
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from t2n_core import errors
from t2n_core.errors import T2NError
from t2n_core.parity.comparison import OutputComparison
from t2n_core.parity.judging.metrics import MetricResult
from t2n_core.parity.stage import PASSING, Stage, Status
from t2n_core.parity.table import comparison_html, comparison_table, sizes_text
from t2n_core.parity.tolerance import TractCheckTolerance
from t2n_core.text import clip, storable, text_of, visible

_SHORT = 120
"""Most characters of a reason in one line."""
ROUNDING = "rounding"
"""Fact of a mismatch that is rounding, as text."""
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """The reason why a cell failed, as text that survives JSON."""

    error_class: str
    message: str
    hint: str = ""
    op: str = ""
    module_path: str = ""
    source: str = ""
    fingerprint: str = ""
    """Equal for failures with one cause: hash of stage, class and message without numbers, paths and shapes."""
    details: str = ""
    """Further reading: the engine's stderr, or the end of a traceback."""

    @classmethod
    def of(cls, stage: str, error_class: str, message: str, **more: str) -> ErrorInfo:
        """Return an error with its fingerprint."""
        message = clip(storable(message))
        details = {name: clip(storable(text)) for name, text in more.items()}
        return cls(error_class, message, fingerprint=fingerprint(stage, error_class, message), **details)

    def with_hint(self, hint: str) -> ErrorInfo:
        """Return the same error with one more hint after its own."""
        return replace(self, hint="; ".join(filter(None, [self.hint, hint])))


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The result of checking one archive in one engine; `to_dict` returns it for JSON."""

    status: Status
    stage: Stage
    """The last stage that was entered."""
    engine: str = ""
    """Name and version, as `tract 0.22.4`."""
    path: str = ""
    """The path through the engine on which it failed; empty for a pass, and for an engine with one path."""
    paths: tuple[str, ...] = ()
    """The paths through the engine that were checked, in order."""
    level: TractCheckTolerance | None = None
    """The tightest level that holds for all outputs at all sizes."""
    required: TractCheckTolerance | None = None
    outputs: tuple[OutputComparison, ...] = ()
    """Per output, the comparison at the size where it is worst."""
    metrics: tuple[MetricResult, ...] = ()
    """The user's own metrics, each where it is worst."""
    sizes: tuple[Mapping[str, int], ...] = ()
    """Sizes of the dynamic axes that were checked, the traced one first."""
    failed_sizes: tuple[Mapping[str, int], ...] = ()
    range: str = ""
    """The sizes for which the archive is valid: `1 <= T <= 16, T % 2 == 0`; empty if nothing varies."""
    refused_sizes: tuple[Mapping[str, int], ...] = ()
    """Sizes just outside the range, at which the engine refused to run, as required."""
    error: ErrorInfo | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage."""
    archive_sha256: str = ""
    archive_bytes: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the model that the engine reported."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """The exception of this outcome; it does not survive JSON."""

    @property
    def passed(self) -> bool:
        """Return whether all outputs agree, also for a weak outcome, whose error is the reason why it proves little."""
        return self.status in PASSING

    @property
    def notes(self) -> list[str]:
        """Return a line for each output for which a pass proves less than it seems to."""
        return [output.note for output in self.outputs if output.note]

    @classmethod
    def from_error(cls, exc: BaseException, stage: str | Stage | None = None, **more: Any) -> Outcome:
        """Return the outcome that reports an exception.

        `stage` is the current stage, for an exception that is not a T2NError; a T2NError has its own.
        `more` are further fields of the outcome.
        """
        if not isinstance(exc, T2NError):
            at = Stage(stage or Stage.SETUP)
            text, hint = text_of(exc) or type(exc).__name__, ""
            if isinstance(exc, Warning):
                text = f"your filterwarnings turned {type(exc).__name__} into an error: {text}"
                hint = _filter_hint(type(exc))
            is_own = isinstance(exc, errors.T2NWarning)
            details, source = ("", "") if is_own else (_traceback_end(exc), _raised_at(exc))
            info = ErrorInfo.of(at, type(exc).__name__, text, hint=hint, details=details, source=source)
            return cls(Status.ERROR, at, error=info, cause=exc, **more)
        at = Stage(exc.stage)
        origin = exc.origin or getattr(exc, "first_origin", None)
        info = ErrorInfo.of(
            at,
            type(exc).__name__,
            exc.message,
            hint=exc.hint or "",
            op=exc.op or "",
            module_path=origin.module_path if origin else "",
            source=origin.source if origin else "",
        )
        return cls(_status_of(exc), at, error=info, cause=exc, **more)

    def __repr__(self) -> str:
        level = f" at `{self.level.value}`" if self.level is not None else ""
        why = "" if self.passed or self.error is None else f": {self.error.message.partition(chr(10))[0][:_SHORT]}"
        return f"<Outcome {self.status.value}{level} in {self.engine or 'no engine'}, stage {self.stage.value}{why}>"

    def _repr_html_(self) -> str:
        """Return the comparison as HTML for a notebook."""
        return f"<p>{escape(repr(self))}</p>{comparison_html(self.outputs)}"

    def as_mismatch(
        self,
        kind: type[T2NError],
        message: str,
        *,
        outputs: tuple[OutputComparison, ...],
        failed_sizes: tuple[Mapping[str, int], ...] = (),
        hint: str = "",
    ) -> Outcome:
        """Return a pass as the mismatch of a further comparison, with an error of class `kind`."""
        return replace(
            self,
            status=Status.MISMATCH,
            stage=Stage.COMPARE,
            level=None,
            outputs=outputs,
            failed_sizes=failed_sizes,
            error=ErrorInfo.of(Stage.COMPARE, kind.__name__, message, hint=hint),
        )

    def as_error(self, stage: Stage, error_class: str, message: str, hint: str = "") -> Outcome:
        """Return a pass as the failure of a further run."""
        error = ErrorInfo.of(stage, error_class, message, hint=hint)
        return replace(self, status=Status.ERROR, stage=stage, level=None, error=error)

    def with_times(self, times: Mapping[str, float]) -> Outcome:
        """Return the same outcome with stage times added."""
        return replace(self, times={**times, **self.times})

    def with_details(self, text: str) -> Outcome:
        """Return the same outcome with a text after the details of its error."""
        error = self.error or ErrorInfo.of(self.stage, "Failure", self.status.value)
        return replace(self, error=replace(error, details=f"{error.details}\n{text}".strip()))

    @property
    def summary(self) -> str:
        """Return status, stage and the first line of the error."""
        why = "" if self.error is None else f": {self.error.message.partition(chr(10))[0][:_SHORT]}"
        return f"{self.status.value} at stage {self.stage.value}{why}"

    def describe(self) -> str:
        """Return the text of a failure: stage, engine, operator, source, hint, table of outputs.

        Control characters are escapes.
        """
        where = f" in {self.engine}" if self.engine else ""
        where += f" on the path `{self.path}`" if self.path else ""
        lines = [f"{self.status.value} at stage `{self.stage.value}`{where}"]
        if self.error:
            lines[0] += f": {self.error.message}"
            for label, value in (
                ("op", self.error.op),
                ("module", self.error.module_path),
                ("source", self.error.source),
                ("hint", self.error.hint),
            ):
                if value and value not in self.error.message:
                    lines.append(f"  {label}: {value}")
        if self.outputs:
            lines.append(comparison_table(self.outputs))
        lines += [f"note: {note}" for note in self.notes]
        lines += [str(metric) for metric in self.metrics]
        if judges := self.facts.get("judged_by"):
            reason = self.facts.get("session")
            lines.append(f"judged by: {', '.join(judges)}" + (f" ({reason})" if reason else ""))
        if any(self.sizes) and self.stage in (Stage.RUN, Stage.COMPARE):
            lines.append(f"sizes checked: {sizes_text(self.sizes)}")
        if self.range:
            refused = f"; refused at {sizes_text(self.refused_sizes)}" if self.refused_sizes else ""
            lines.append(f"the archive holds for {self.range}{refused}")
        if self.failed_sizes and any(self.failed_sizes):
            lines.append(f"failed at: {sizes_text(self.failed_sizes)}")
        if self.error and self.error.details:
            lines.append(self.error.details.rstrip())
        return visible("\n".join(lines))

    def raise_for_failure(self) -> Outcome:
        """Return the outcome itself if it is a pass, and raise otherwise.

        Raises:
            ParityError: outputs differ; the message holds a table of the outputs.
            T2NError: the subclass for the stage and status; the exception of this outcome is raised again as it was.
        """
        __tracebackhide__ = True
        if self.passed or self.status is Status.SKIP:
            return self
        if self.cause is not None:
            raise self.cause
        raise _error_class_of(self)(self.describe())

    def to_dict(self) -> dict[str, Json]:
        """Return the outcome in JSON's own types; NaN and infinities are the strings `nan`, `inf`, `-inf`."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "cause"}


_STATUS_BY_CLASS: tuple[tuple[type[T2NError], Status], ...] = (
    (errors.UnsupportedOpsError, Status.UNSUPPORTED),
    (errors.RefusedError, Status.UNSUPPORTED),
    (errors.SpecError, Status.UNSUPPORTED),
    (errors.EngineCrash, Status.CRASH),
    (errors.EngineTimeout, Status.TIMEOUT),
    (errors.EngineOutOfMemory, Status.OOM),
    (errors.ParityError, Status.MISMATCH),
)
_CLASS_BY_STATUS: Mapping[Status, type[T2NError]] = {
    Status.MISMATCH: errors.ParityError,
    Status.CRASH: errors.EngineCrash,
    Status.TIMEOUT: errors.EngineTimeout,
    Status.OOM: errors.EngineOutOfMemory,
}
_OWN_CLASSES: Mapping[str, type[T2NError]] = {
    error_class.__name__: error_class
    for error_class in (
        errors.SecondCallError,
        errors.RowsError,
        errors.PiecesError,
        errors.CallsError,
        errors.InterfaceError,
    )
}
_CLASS_BY_STAGE: Mapping[Stage, type[T2NError]] = {
    Stage.SETUP: errors.T2NError,
    Stage.INPUT: errors.InputError,
    Stage.CAPTURE: errors.CaptureError,
    Stage.LOWER: errors.LowerError,
    Stage.SPEC: errors.SpecError,
    Stage.WRITE: errors.WriteError,
    Stage.LOAD: errors.EngineLoadError,
    Stage.OPTIMISE: errors.EngineOptimiseError,
    Stage.RUN: errors.EngineRunError,
    Stage.COMPARE: errors.ParityError,
}


def error_name(status: Status, stage: Stage) -> str:
    """Return the name of the T2NError subclass of an engine's failure."""
    return (_CLASS_BY_STATUS.get(status) or _CLASS_BY_STAGE[stage]).__name__


def _status_of(exc: T2NError) -> Status:
    for kind, status in _STATUS_BY_CLASS:
        if isinstance(exc, kind):
            return status
    return Status.ERROR


def _error_class_of(outcome: Outcome) -> type[T2NError]:
    error_class = _OWN_CLASSES.get(outcome.error.error_class) if outcome.error is not None else None
    return error_class or _CLASS_BY_STATUS.get(outcome.status) or _CLASS_BY_STAGE[outcome.stage]


def _last_part(match: re.Match[str]) -> str:
    """Return the last part of a path, and any other run of letters as it is."""
    path = match[0].rstrip("/")
    return path.rpartition("/")[2] + match[0][len(path) :] if "/" in path else match[0]


_UNSTABLE = (
    (re.compile(r"[\w.+~/-]+"), _last_part),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x"),
    (re.compile(r"\d+(?:[.,x*]\s*\d+)*"), "N"),
    (re.compile(r"N(?:\s*[,x*]\s*(?:N|[A-Z]\b))+"), "N"),
    (re.compile(r"\s+"), " "),
)


def fingerprint(stage: str, error_class: str, message: str) -> str:
    """Return 12 hex digits that are equal for failures of one cause; numbers, paths, shapes and spaces are ignored."""
    for pattern, stand_in in _UNSTABLE:
        message = pattern.sub(stand_in, message)
    return hashlib.sha256(storable(f"{stage}|{error_class}|{message.strip()}").encode()).hexdigest()[:12]


def plain(value: Any) -> Json:
    """Return `value` in JSON's own types; a value that JSON does not support becomes its `str`."""
    if value is None or type(value) in (int, bool):  # most values, and the cheapest test
        return value  # type: ignore[no-any-return]
    if type(value) is str:
        return storable(value)
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    if type(value) in (list, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {text_of(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in (sorted(value, key=text_of) if isinstance(value, set | frozenset) else value)]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return text_of(value)


def _filter_hint(category: type[Warning]) -> str:
    """Return the filter that lets a warning through."""
    if issubclass(category, errors.T2NWarning):
        hint = f"`ignore::t2n_core.{category.__name__}` lets it through, and `ignore::t2n_core.T2NWarning` all of ours"
        return f"{hint}: docs, `Errors and warnings`"
    home = "" if category.__module__ == "builtins" else f"{category.__module__}."
    return f"`ignore::{home}{category.__qualname__}` lets it through"


def _traceback_end(exc: BaseException, frames: int = 6) -> str:
    return "".join(traceback.format_exception(exc, limit=-frames, chain=False)).strip()


def _raised_at(exc: BaseException) -> str:
    steps = traceback.extract_tb(exc.__traceback__)
    if not steps:
        return ""
    return f"{Path(steps[-1].filename).name}:{steps[-1].lineno} in {steps[-1].name}"


__all__ = ["ErrorInfo", "Json", "Outcome", "Stage", "Status", "error_name", "fingerprint", "plain"]
