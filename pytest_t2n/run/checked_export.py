"""The export that the fixture `nnef_export` returns to a test; its checks are recorded in the matrix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_t2n.collect.generating import STEPS, GenerateOptions
from pytest_t2n.collect.markers import CaseOptions, with_judgement
from pytest_t2n.run.calls.watched import Watched

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.generation.outcome import GenerationOutcome
    from t2n_core.parity.outcome import Outcome


class Checks(Protocol):
    """The run of a cell, which checks and collects outcomes."""

    def check(self, result: ExportResult, options: CaseOptions) -> Outcome: ...

    def generation(
        self, result: ExportResult, options: CaseOptions, generate: GenerateOptions
    ) -> GenerationOutcome: ...

    def add(self, outcome: Outcome, export: Any = None, archive: Path | None = None) -> None: ...


class CheckedExport:
    """An `ExportResult` whose checks are recorded in the matrix; every other attribute is the result's own."""

    def __init__(self, run: Checks, result: ExportResult, options: CaseOptions) -> None:
        self._run, self._result, self._options = run, result, options
        self.is_checked = False
        """True once the test ran a check."""
        self._failed: list[Watched[Any]] = []

    @property
    def wants_check(self) -> bool:
        """Return False if the options declare that the test is only about the export."""
        return self._options.check

    @property
    def ignored_outcomes(self) -> list[Outcome | GenerationOutcome]:
        """Return the outcomes of failed checks that the test did not read."""
        return [failed.value for failed in self._failed if not failed.was_read]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def check_parity(
        self, tolerance: Any = None, *, timeout: float | None = None, note: bool = True, **judged_by: Any
    ) -> Outcome:
        """Compare in the engine of this test; failures are outcomes, never raised.

        `tolerance`, `atol`, `rtol`, `metric`, `bound` and `timeout` are those of the marker, and override it.
        Without `note` the outcome is not recorded in the matrix unless it is passed to `note`.

        Raises:
            MarkerError: an unknown argument, or a wrong value.
        """
        __tracebackhide__ = True
        outcome = self._check(tolerance, timeout, judged_by, note=note)
        found: Outcome = self._watch(outcome, outcome.passed) if note else outcome
        return found

    def assert_parity(self, tolerance: Any = None, *, timeout: float | None = None, **judged_by: Any) -> Outcome:
        """Do as `check_parity`, and raise for a failure.

        Raises:
            T2NError: the check failed; ParityError for a mismatch.
        """
        __tracebackhide__ = True
        return self._check(tolerance, timeout, judged_by, note=True).raise_for_failure()

    def _watch(self, outcome: Any, passed: bool) -> Any:
        """Return the outcome; for a failed check one that records whether the test reads it."""
        if passed:
            return outcome
        self._failed.append(Watched(outcome))
        return self._failed[-1].proxy()

    def _check(self, tolerance: Any, timeout: float | None, judged_by: Mapping[str, Any], *, note: bool) -> Outcome:
        __tracebackhide__ = True
        self.is_checked = True
        given = {"tolerance": tolerance, "timeout": timeout, **judged_by}
        outcome = self._run.check(self._result, with_judgement(self._options, given))
        return self.note(outcome) if note else outcome

    def check_generation(
        self, prompts: Any = None, steps: int = STEPS, tolerance: Any = None, *, timeout: float | None = None
    ) -> GenerationOutcome:
        """Generate tokens in the engine of this test, and compare them with PyTorch's, as `nnef_generate` does.

        The arguments are those of that marker. Raises InputError for prompts that the model cannot take.
        """
        self.is_checked = True
        options = with_judgement(self._options, {"tolerance": tolerance, "timeout": timeout})
        found = self._run.generation(self._result, options, GenerateOptions(steps, prompts))
        self.note(found.outcome)
        watched: GenerationOutcome = self._watch(found, found.outcome.passed)
        return watched

    def assert_generation(
        self, prompts: Any = None, steps: int = STEPS, tolerance: Any = None, *, timeout: float | None = None
    ) -> GenerationOutcome:
        """Do as `check_generation`, and raise for a failure.

        Raises:
            T2NError: the check failed; ParityError for other tokens or logits.
        """
        __tracebackhide__ = True
        return self.check_generation(prompts, steps, tolerance, timeout=timeout).raise_for_failure()  # which reads it

    def note(self, outcome: Outcome) -> Outcome:
        """Record the outcome of another check of this archive in the matrix, and return it."""
        self.is_checked = True
        self._run.add(outcome, getattr(self._result, "export", None), self._result.archive)
        return outcome
