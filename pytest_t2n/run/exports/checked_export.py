"""The export that the fixture `nnef_export` returns to a test; its checks are recorded in the matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_t2n.collect.generating import STEPS, GenerateOptions
from pytest_t2n.collect.markers import CaseOptions, with_judgement
from pytest_t2n.run.calls.verdicts import Check, Verdicts

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.generation.outcome import GenerationOutcome
    from t2n_core.parity.outcome import Outcome


class Checks(Protocol):
    """The run of a cell, which checks and collects outcomes."""

    @property
    def verdicts(self) -> Verdicts: ...

    def check(self, result: ExportResult, options: CaseOptions) -> Outcome: ...

    def generation(
        self, result: ExportResult, options: CaseOptions, generate: GenerateOptions
    ) -> GenerationOutcome: ...

    def add(
        self, outcome: Outcome, export: Any = None, archive: Path | None = None, check: Check | None = None
    ) -> None: ...


class CheckedExport:
    """An `ExportResult` whose checks are recorded in the matrix; every other attribute is the result's own."""

    def __init__(self, run: Checks, result: ExportResult, options: CaseOptions) -> None:
        self._run, self._result, self._options = run, result, options
        self.is_checked = False
        """True once the test ran a check."""
        self._unnoted: list[Check] = []
        """Failed checks that the test keeps out of the matrix so far."""

    @property
    def wants_check(self) -> bool:
        """Return False if the options declare that the test is only about the export."""
        return self._options.check

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def check_parity(
        self,
        tolerance: Any = None,
        *,
        timeout: float | None = None,
        note: bool = True,
        expected: str = "",
        **judged_by: Any,
    ) -> Outcome:
        """Compare in the engine of this test, and return the outcome, even of a failure.

        A test that passes despite a failure says why it expects that in `expected`, which the record then holds.
        `tolerance`, `atol`, `rtol`, `metric`, `bound`, `reference` and `timeout` are the marker's, and override it.
        Without `note` the outcome is recorded in the matrix only if the test passes it, or an outcome made from it, to
        `note`; a failure must be noted or expected.

        Raises:
            MarkerError: an unknown argument, or a wrong value.
        """
        __tracebackhide__ = True
        return self._check({"tolerance": tolerance, "timeout": timeout, **judged_by}, note=note, expected=expected)[0]

    def assert_parity(self, tolerance: Any = None, *, timeout: float | None = None, **judged_by: Any) -> Outcome:
        """Do as `check_parity`, and raise for a failure.

        Raises:
            T2NError: the check failed; ParityError for a mismatch.
        """
        __tracebackhide__ = True
        outcome, check = self._check({"tolerance": tolerance, "timeout": timeout, **judged_by})
        return _raise_for(outcome, check)

    def check_generation(
        self,
        prompts: Any = None,
        steps: int = STEPS,
        tolerance: Any = None,
        *,
        timeout: float | None = None,
        expected: str = "",
    ) -> GenerationOutcome:
        """Generate tokens in the engine of this test, and compare them with PyTorch's, as `nnef_generate` does.

        The arguments are that marker's, and `expected` is as in `check_parity`. Raises InputError for prompts that the
        model cannot take.
        """
        __tracebackhide__ = True
        return self._generation(prompts, steps, tolerance, timeout, expected)[0]

    def assert_generation(
        self, prompts: Any = None, steps: int = STEPS, tolerance: Any = None, *, timeout: float | None = None
    ) -> GenerationOutcome:
        """Do as `check_generation`, and raise for a failure.

        Raises:
            T2NError: the check failed; ParityError for other tokens or logits.
        """
        __tracebackhide__ = True
        generation, check = self._generation(prompts, steps, tolerance, timeout)
        _raise_for(generation.outcome, check)
        return generation

    def note(self, outcome: Outcome, *, expected: str = "") -> Outcome:
        """Record the outcome of another check of this archive in the matrix, and return it.

        A test that passes despite a failure says why in `expected`.
        """
        for unnoted in self._unnoted:
            unnoted.expected = unnoted.expected or "judged by a noted outcome"
        self._note(outcome, self._run.verdicts.begin(expected))
        return outcome

    def _check(self, arguments: Mapping[str, Any], *, note: bool = True, expected: str = "") -> tuple[Outcome, Check]:
        __tracebackhide__ = True
        check = self._run.verdicts.begin(expected)
        self.is_checked = True
        with self._errors_of(check):
            outcome = self._run.check(self._result, with_judgement(self._options, arguments))
        if note:
            self._note(outcome, check)
        else:
            self._run.verdicts.end(check, outcome)
            self._unnoted.append(check)
        return outcome, check

    def _generation(
        self, prompts: Any, steps: int, tolerance: Any, timeout: float | None, expected: str = ""
    ) -> tuple[GenerationOutcome, Check]:
        __tracebackhide__ = True
        check = self._run.verdicts.begin(expected)
        self.is_checked = True
        with self._errors_of(check):
            options = with_judgement(self._options, {"tolerance": tolerance, "timeout": timeout})
            generation = self._run.generation(self._result, options, GenerateOptions(steps, prompts))
        self._note(generation.outcome, check)
        return generation, check

    def _note(self, outcome: Outcome, check: Check) -> None:
        self.is_checked = True
        self._run.add(outcome, getattr(self._result, "export", None), self._result.archive, check)

    @contextmanager
    def _errors_of(self, check: Check) -> Iterator[None]:
        """End the check with the error that the block raises."""
        __tracebackhide__ = True
        try:
            yield
        except Exception as exc:
            from t2n_core.parity.outcome import Outcome

            self._run.verdicts.end(check, Outcome.from_error(exc, "compare"), exc)
            raise


def _raise_for(outcome: Outcome, check: Check) -> Outcome:
    """Raise for a failed outcome, and add the exception to its check."""
    __tracebackhide__ = True
    try:
        return outcome.raise_for_failure()
    except BaseException as exc:
        check.raised = exc
        raise
