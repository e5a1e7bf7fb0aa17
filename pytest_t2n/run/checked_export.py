"""The export that the fixture `nnef_export` gives to a test; its checks end in the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_t2n.collect.generating import STEPS, GenerateOptions
from pytest_t2n.collect.markers import CaseOptions, with_judgement

if TYPE_CHECKING:
    from t2n_core.check.generation.outcome import GenerationOutcome
    from t2n_core.check.outcome import Outcome
    from t2n_core.export.result import ExportResult


class Checks(Protocol):
    """The run of a cell, which checks and notes outcomes."""

    def check(self, result: ExportResult, options: CaseOptions) -> Outcome: ...

    def generation(
        self, result: ExportResult, options: CaseOptions, generate: GenerateOptions
    ) -> GenerationOutcome: ...

    def add(self, outcome: Outcome, export: Any = None, archive: Path | None = None) -> None: ...


class CheckedExport:
    """An `ExportResult` whose checks end in the matrix; every other attribute is the result's own."""

    def __init__(self, run: Checks, result: ExportResult, options: CaseOptions) -> None:
        self._run, self._result, self._options = run, result, options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def check_parity(
        self, tolerance: Any = None, *, timeout: float | None = None, note: bool = True, **judged_by: Any
    ) -> Outcome:
        """Compare in the engine of this test; never raises for what the engine does or computes.

        `tolerance`, `atol`, `rtol`, `metric`, `bound` and `timeout` are those of the marker, whose place they take.
        Without `note` the outcome does not stand in the matrix unless it is handed to `note`.

        Raises:
            MarkerError: an unknown argument, or a wrong value.
        """
        __tracebackhide__ = True
        given = {"tolerance": tolerance, "timeout": timeout, **judged_by}
        outcome = self._run.check(self._result, with_judgement(self._options, given))
        return self.note(outcome) if note else outcome

    def assert_parity(self, tolerance: Any = None, *, timeout: float | None = None, **judged_by: Any) -> Outcome:
        """Do as `check_parity`, and raise for a failure.

        Raises:
            T2NError: the check failed; ParityError for other numbers.
        """
        __tracebackhide__ = True
        return self.check_parity(tolerance, timeout=timeout, **judged_by).raise_for_failure()

    def check_generation(
        self, prompts: Any = None, steps: int = STEPS, tolerance: Any = None, *, timeout: float | None = None
    ) -> GenerationOutcome:
        """Generate tokens in the engine of this test, and compare them with PyTorch's, as `nnef_generate` does.

        The arguments are those of that marker. Raises InputError for prompts that the model cannot take.
        """
        options = with_judgement(self._options, {"tolerance": tolerance, "timeout": timeout})
        found = self._run.generation(self._result, options, GenerateOptions(steps, prompts))
        self.note(found.outcome)
        return found

    def assert_generation(
        self, prompts: Any = None, steps: int = STEPS, tolerance: Any = None, *, timeout: float | None = None
    ) -> GenerationOutcome:
        """Do as `check_generation`, and raise for a failure.

        Raises:
            T2NError: the check failed; ParityError for other tokens or logits.
        """
        __tracebackhide__ = True
        return self.check_generation(prompts, steps, tolerance, timeout=timeout).raise_for_failure()

    def note(self, outcome: Outcome) -> Outcome:
        """Note the outcome of another check of this archive, so that it stands in the matrix, and return it."""
        self._run.add(outcome, getattr(self._result, "export", None), self._result.archive)
        return outcome


__all__ = ["CheckedExport"]
