"""The captures of one model, each shared by the targets that it is valid for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from t2n_core.errors import T2NError
from t2n_core.inference_target.base import InferenceTarget
from t2n_core.rewriter.context import Session, Target
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.capture.tracer import CapturedModel


@dataclass(frozen=True, slots=True)
class Capture:
    """A captured model and the rewriters that changed it."""

    model: CapturedModel
    rewriters: frozenset[Rewriter]
    hits: Counter[Rewriter]
    target: Target
    """The target of the capture: it is valid for others of which the rewriters would read the same."""


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
        return next((c for c in self.entries if c.rewriters == rewriters and c.target.reads_alike(target)), None)

    def find_refusal(self, selection: Selection) -> T2NError | None:
        """Return the error of an earlier capture with the same rewriters: a new one would fail in the same way."""
        return next((error for rewriters, error in self.refusals if rewriters == selection.of_capture), None)

    def keep_refusal(self, error: T2NError, selection: Selection, session: Session) -> None:
        # what a rewriter does for one target may not apply to another
        if not session.target.asked and not session.target.operators:
            self.refusals.append((selection.of_capture, error))

    def keep(self, model: CapturedModel, selection: Selection, session: Session) -> Capture:
        if session.target.asked:
            self.entries = [c for c in self.entries if not c.target.asked]
        self.entries.append(Capture(model, selection.of_capture, session.hits, session.target))
        return self.entries[-1]
