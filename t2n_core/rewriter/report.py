"""The report on the rewriters of an export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from t2n_core.errors import RewriteError, RewriteWarning
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """The rewriters of one export: how often each applied, and which did not."""

    applied: Mapping[Rewriter, int]
    """How often each applied."""
    unapplied: Mapping[Rewriter, str]
    """The rewriters for the target that had no effect, with the reason if it is known."""

    @classmethod
    def of(cls, selection: Selection, hits: Counter[Rewriter]) -> RewriteReport:
        unused = [r for r in selection.chosen if not hits[r] and not r.builtin and not r.registered]
        return cls(dict(hits), {r: selection.absent.get(r, "the model does not use it") for r in unused})

    def __str__(self) -> str:
        lines = [f"{rewriter}: applied {count} times" for rewriter, count in self.applied.items()]
        lines += [f"{rewriter}: never applied, {reason}" for rewriter, reason in self.unapplied.items()]
        return "\n".join(lines) or "no rewriters"

    def problem(self, target: str) -> RewriteError | None:
        """Return the error about rewriters that never applied; None if all did."""
        if not self.unapplied:
            return None
        listed = "\n".join(f"- {rewriter}: {reason}" for rewriter, reason in self.unapplied.items())
        return RewriteError(f"rewriters that never applied:\n{listed}", target=target)


__all__ = ["RewriteReport", "RewriteWarning"]
