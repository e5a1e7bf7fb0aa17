"""The captures of one model, each shared by the targets that it is valid for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from t2n_core.errors import T2NError
from t2n_core.inference_target.base import InferenceTarget
from t2n_core.rewriter.context import Session
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.capture.tracer import CapturedModel


@dataclass(frozen=True, slots=True)
class Capture:
    """A captured model and the rewriters that changed it."""

    model: CapturedModel
    rewriters: frozenset[Rewriter]
    hits: Counter[Rewriter]
    only_for: InferenceTarget | None
    """The only target that it is valid for, if a rewrite read its target; None if it is valid for all."""


@dataclass(slots=True)
class Captures:
    """One capture per set of rewriters that act during capture. Those for one target only do not accumulate."""

    entries: list[Capture] = field(default_factory=list)
    refusals: list[tuple[object, T2NError]] = field(default_factory=list)

    @property
    def latest(self) -> CapturedModel | None:
        return self.entries[-1].model if self.entries else None

    def find(self, selection: Selection, target: InferenceTarget | None) -> Capture | None:
        rewriters = selection.of_capture
        fitting = (c for c in self.entries if c.rewriters == rewriters and (c.only_for is None or c.only_for is target))
        return next(fitting, None)

    def find_refusal(self, selection: Selection) -> T2NError | None:
        """Return the error of an earlier capture with the same rewriters: a new one would fail in the same way."""
        return next((error for rewriters, error in self.refusals if rewriters == selection.of_capture), None)

    def keep_refusal(self, error: T2NError, selection: Selection, session: Session) -> None:
        if not session.target.asked:  # what a rewriter does for one target may not apply to another
            self.refusals.append((selection.of_capture, error))

    def keep(self, model: CapturedModel, selection: Selection, session: Session) -> Capture:
        target = session.target.get() if session.target.asked else None
        if target is not None:
            self.entries = [c for c in self.entries if c.only_for is None]
        self.entries.append(Capture(model, selection.of_capture, session.hits, target))
        return self.entries[-1]
