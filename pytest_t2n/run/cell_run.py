"""The run of one cell, from the test function to its outcome."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect.generating import GenerateOptions
from pytest_t2n.collect.judging import judgement_of
from pytest_t2n.collect.markers import CaseOptions, marks_of, read_marks, with_judgement
from pytest_t2n.collect.rewriters import rewriters_of
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import Cell
from pytest_t2n.run.cache import ExportCache
from pytest_t2n.run.calls.requests import TO_CHECK, TO_RETURN_GENERATING, model_and_inputs, refuse_async, summary
from pytest_t2n.run.calls.surroundings import no_skips, reads_engine, seed_torch
from pytest_t2n.run.calls.verdicts import HOW_TO_EXPECT, UNFINISHED, Check, Verdicts, decisive
from pytest_t2n.run.check import check_result
from pytest_t2n.run.export_summary import ExportSummary, summarise
from pytest_t2n.run.exports.checked_export import CheckedExport
from pytest_t2n.run.exports.converter import is_export, new_export, to_archive
from pytest_t2n.run.file_check import FilePaths, check_foreign, check_in_engine, new_file_check
from pytest_t2n.run.several_archives.generation import (
    check_tokens,
    decoder_of,
    model_and_prompt,
    new_generating,
    prompts_of,
    to_folder,
)
from pytest_t2n.run.several_archives.program import check_program, new_program
from t2n_core.errors import T2NError, T2NWarning

if TYPE_CHECKING:
    from pytest_t2n.run.several_archives.generation import Generating
    from t2n_core.export.model import ModelExport
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.generation.outcome import GenerationOutcome
    from t2n_core.parity.outcome import Outcome

_BEFORE_GRAPHS = ("setup", "input", "capture")
"""Stages at which there is no graph to summarise yet, so that a summary would capture again."""


class CellRun:
    """The exports and checks of one cell while its test runs."""

    def __init__(
        self,
        item: pytest.Item,
        cell: Cell,
        settings: Settings,
        cache: ExportCache,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        self.item, self.cell, self.settings, self.cache = item, cell, settings, cache
        self.tell = tell
        self.verdicts = Verdicts(cell.nodeid, tell)
        self.is_called = False
        """True while the test function runs: what is reported meanwhile is a part of the test, as a subtest."""
        self.marks = marks_of(item)
        self.outcomes: list[Outcome] = []
        self.summaries: list[ExportSummary] = []
        """Summary of the export of each outcome."""
        self.exports = 0
        self._fixture_exports: list[CheckedExport] = []
        self._archives: list[Path] = []

    @property
    def outcome(self) -> Outcome | None:
        """Return the worst failure, or the pass with the loosest level; None if nothing was exported."""
        return decisive(self.outcomes)

    def add(
        self, outcome: Outcome, export: Any = None, archive: Path | None = None, check: Check | None = None
    ) -> None:
        """Add the outcome of a check, which is begun if there is none, with its ExportResult, or the ModelExport."""
        self.verdicts.end(self.verdicts.begin() if check is None else check, outcome)
        captured = export is not None and outcome.stage.value not in _BEFORE_GRAPHS
        captured = captured and (archive is not None or not self.cell.engine.exporter)  # others capture nothing
        self._append(outcome, summarise(export, archive) if captured else None)

    def decisive_summary(self) -> ExportSummary:
        """Return the summary of the decisive export, with the operators of all exports."""
        outcome = self.outcome
        pairs = zip(self.outcomes, self.summaries, strict=True)
        chosen = next((summary for candidate, summary in pairs if candidate is outcome), ExportSummary())
        ops = dict.fromkeys(op for summary in self.summaries for op in summary.ops)
        dtype = chosen.dtype or next((summary.dtype for summary in self.summaries if summary.dtype), "")
        return replace(chosen, ops=tuple(ops), dtype=dtype)

    @cached_property
    def _marked_options(self) -> CaseOptions:
        """The options of the test's own marks. Raises MarkerError."""
        return read_marks(self.marks)

    def check_returned(
        self, test: Callable[..., Any], arguments: Mapping[str, Any], *, may_be_none: bool = False
    ) -> None:
        """Run a test that returns its model, and check the model; exceptions of the test itself propagate.

        With `may_be_none` a test that returns nothing is accepted.

        Raises:
            pytest.fail.Exception: the cell failed; the message is complete, without a traceback.
        """
        from t2n_core.parity.outcome import Outcome

        __tracebackhide__ = True
        options = self._marked_options
        if options.generate is not None and options.export.state is None:
            self._generate(test, arguments, options, options.generate)
            return
        if options.program:
            folder = self.cache.new_archive().with_suffix("")
            self._archives.append(folder)
            check = partial(check_program, self.cell, self.settings, options=options, folder=folder, check=self.check)
            self._check_all("program", test, arguments, new_program, check)
            return
        if options.file is not None:
            paths = FilePaths(self.item.path.parent, self.cache.new_archive().with_suffix(".onnx"))
            create = partial(new_file_check, paths=paths, options=options, settings=self.settings)
            self._check_all("file", test, arguments, create, partial(check_in_engine, self))
            return
        # A khronos graph has no symbols, and needs a separate capture.
        static = options.export.dynamic_axes is not None and options.has_fixed_sizes(self.cell.engine.target)
        key = (self.cell.case, static, self.cell.engine.id if reads_engine(self.item) else "")
        cached_export = self.cache.find(key)
        returned = self._call(test, arguments) if cached_export is None else None
        if cached_export is None and returned is None and may_be_none:
            return
        export: ModelExport | None = None
        try:
            with no_skips():
                export = self._take(cached_export, returned, options, key)
                result = self._to_archive(export, options)
        except Exception as exc:
            outcome = Outcome.from_error(exc, "lower", engine=self.cell.engine.title)
            self.add(outcome, export)
        else:
            if not options.check:
                return
            if options.generate is not None:
                self._fail_unless(self._check_and_note(result, options, options.generate))
                return
            with no_skips():
                outcome = self.check(result, options)
            self.add(outcome, result, result.archive)
        self._fail_unless(outcome)

    def _generate(
        self, test: Callable[..., Any], arguments: Mapping[str, Any], options: CaseOptions, generate: GenerateOptions
    ) -> None:
        """Export a model of transformers with its cache, and check the tokens that it generates."""
        from t2n_core.parity.outcome import Outcome

        __tracebackhide__ = True
        key = (self.cell.case, "generate")
        entry = self.cache.find(key)
        if entry is None:
            entry = self._generating(self._call(test, arguments), options, generate)
            self.cache.keep(key, entry)
        try:
            if isinstance(entry, Exception):
                raise entry
            export, prompts = entry
            folder = self.cache.new_archive().with_suffix("")
            self._archives.append(folder)
            result = to_folder(export, options, self.cell.engine, folder)
        except Exception as exc:
            failed = Outcome.from_error(exc, "lower", engine=self.cell.engine.title)
            self.add(failed)
            outcome: Outcome | GenerationOutcome = failed
        else:
            self.exports += 1
            if not options.check:
                return
            outcome = self._check_and_note(result, options, replace(generate, prompts=prompts))
        self._fail_unless(outcome)

    def _check_all(
        self,
        kind: str,
        test: Callable[..., Any],
        arguments: Mapping[str, Any],
        create: Callable[[Any], Any],
        check: Callable[[Any], Iterator[tuple[Outcome, ExportResult | None]]],
    ) -> None:
        """Create what a test checks from its result, once for all engines, and add each outcome of the check."""
        __tracebackhide__ = True
        key = (self.cell.case, kind)
        subject = self.cache.find(key)
        if subject is None:
            subject = create(self._call(test, arguments))
            self.cache.keep(key, subject)
        for outcome, part in check(subject):
            self.exports += part is not None
            self.add(outcome, part, None if part is None else part.archive)
            if not outcome.passed:
                self._fail_unless(outcome)
        self.close()

    def _generating(self, returned: Any, options: CaseOptions, generate: GenerateOptions) -> Any:
        """Return the export of a test's result, with its prompts; or the error of the export."""
        model, prompt = model_and_prompt(returned)
        if model is None or isinstance(model, tuple | list):
            pytest.fail(f"this test returned {summary(returned)}: {TO_RETURN_GENERATING}", pytrace=False)
        try:
            rewriters = rewriters_of(self.item, options.export.rewriters)
            return new_generating(model, prompt, options, generate, rewriters), prompts_of(prompt, generate)
        except Exception as exc:
            return exc

    def _check_and_note(
        self, result: Generating, options: CaseOptions, generate: GenerateOptions
    ) -> Outcome | GenerationOutcome:
        """Check tokens, add the outcome, and return it."""
        from t2n_core.parity.outcome import Outcome

        export = decoder_of(result)
        try:
            generation = self.generation(result, options, generate)
        except Exception as exc:
            failed = Outcome.from_error(exc, "compare", engine=self.cell.engine.title)
            self.add(failed, export, export.archive)
            return failed
        self.add(generation.outcome, export, export.archive)
        return generation

    def generation(self, result: Generating, options: CaseOptions, generate: GenerateOptions) -> GenerationOutcome:
        """Compare the tokens in the engine by the options, without adding the outcome. Raises T2NError."""
        level = options.judged_by.get("tolerance") or self.settings.level
        seconds = self.settings.timeout if options.timeout is None else options.timeout
        return check_tokens(self.cell, self.settings, result, generate.prompts, generate.steps, level, seconds)

    def _fail_unless(self, outcome: Outcome | GenerationOutcome) -> None:
        """Remove the archives, and fail unless the check passed."""
        __tracebackhide__ = True
        self.close()
        if not outcome.passed:
            pytest.fail(outcome.describe(), pytrace=False)

    def export(
        self, model: Any, args: Any = None, *, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> CheckedExport:
        """Export `model` for this test's engine: the fixture `nnef_export` is this method.

        A ModelExport as `model` already has its arguments and capture.

        Raises:
            T2NError: the export failed, at the stage of the error.
            MarkerError: an option is unknown.
        """
        from t2n_core.parity.outcome import Outcome

        __tracebackhide__ = True
        merged = read_marks(self.marks, options)
        export = None
        try:
            with no_skips():
                export = model if is_export(model) else self._new_export(model, args, kwargs, merged)
                result = self._to_archive(export, merged)
        except Exception as exc:
            check, outcome = self.verdicts.begin(), Outcome.from_error(exc, "lower", engine=self.cell.engine.title)
            self.add(outcome, export, check=check)
            check.raised = exc
            if isinstance(exc, T2NWarning) and outcome.error is not None:
                exc.add_note(f"a filter of yours turned this warning into an error: {outcome.error.hint}")
            if isinstance(exc, T2NError | T2NWarning):
                raise exc.with_traceback(None) from None  # its message is complete; our frames would hide it
            raise
        exported = CheckedExport(self, result, merged)
        self._fixture_exports.append(exported)
        return exported

    def check(self, result: Any, options: CaseOptions) -> Outcome:
        """Compare in the engine by the options and the user's hook, without adding the outcome.

        Raises:
            MarkerError: a hook returned a wrong argument.
        """
        hooked = self.item.ihook.pytest_t2n_judgement(item=self.item, engine=self.cell.engine)
        if hooked is not None:
            options = with_judgement(options, hooked, defaults=True)
        by_plan = {"tolerance": result.planned_level} if result.planned_level else {}
        criteria = judgement_of(options.judged_by or by_plan, self.settings.level)
        seconds = self.settings.timeout if options.timeout is None else options.timeout
        properties = dict(self.item.user_properties)
        if self.cell.engine.exporter:
            return check_foreign(self, result, criteria, seconds, properties).with_times(result.times)
        more = len(self.outcomes), options.transforms, self.tell
        outcome = check_result(self.cell, self.settings, result, criteria, seconds, properties, *more)
        return outcome.with_times(result.times)

    def why_unproven(self) -> str:
        """Return why this test may not pass, which then has an outcome; empty if it may."""
        if open_checks := self.verdicts.open:
            outcome = next((check.outcome for check in open_checks if check.outcome is not None), None)
            if outcome is None:
                return self._fail("UnfinishedCheckError", UNFINISHED).describe()
            if not any(other is outcome for other in self.outcomes):
                self._append(outcome)
            return f"a check of this test failed, and the test does not: {outcome.describe()}\n  hint: {HOW_TO_EXPECT}"
        exports_to_check = [export for export in self._fixture_exports if export.wants_check]
        unchecked = [export for export in exports_to_check if not export.is_checked]
        proves_nothing = not self.outcomes and (bool(exports_to_check) or not self._fixture_exports)
        if self._marked_options.check and (unchecked or proves_nothing):
            return self._fail("NotCheckedError", self._not_checked(len(unchecked)), TO_CHECK).describe()
        return ""

    def end_badly(self, why: str) -> None:
        """Add the failure of a teardown, unless it is a check's."""
        if self.outcome is None or self.outcome.passed:
            self._fail("UnfinishedCheckError", why)

    def fail_part(self, message: str) -> None:
        """Add the failure of a subtest, which is reported separately, unless it is a check's."""
        if not self.verdicts.open:
            self._fail("SubtestFailed", message)

    def _fail(self, error_class: str, message: str, hint: str = "") -> Outcome:
        """Add an outcome for what the test did or left out, and return it."""
        from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status

        stage = Stage.COMPARE if self.exports else Stage.SETUP
        error = ErrorInfo.of(stage, error_class, message, hint=hint)
        outcome = Outcome(Status.ERROR, stage, engine=self.cell.engine.title, error=error)
        self._append(outcome)
        return outcome

    def _append(self, outcome: Outcome, summary: ExportSummary | None = None) -> None:
        self.outcomes.append(outcome)
        self.summaries.append(ExportSummary() if summary is None else summary)

    def _not_checked(self, unchecked: int) -> str:
        """Return the models that were not checked, as text."""
        if not self.outcomes:
            return f"this test {'exported a model' if self.exports else 'exported nothing'} and checked nothing"
        return f"this test did not check {unchecked} of the {self.exports} models that it exported"

    def require_no_failure(self) -> None:
        """Fail a test that is skipped after one of its checks has failed.

        Raises:
            pytest.fail.Exception: a check failed.
        """
        __tracebackhide__ = True
        outcome = self.outcome
        if outcome is not None and not outcome.passed:
            pytest.fail(f"this test was skipped after a failed check: {outcome.describe()}", pytrace=False)

    def close(self) -> None:
        """Remove the archives."""
        for archive in self._archives:
            with suppress(OSError):
                shutil.rmtree(archive) if archive.is_dir() else archive.unlink(missing_ok=True)
        self._archives.clear()

    def _call(self, test: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True
        with seed_torch(self.cell.case):
            return refuse_async(test, test(**arguments))

    def _take(
        self, cached_export: ModelExport | Exception | None, returned: Any, options: CaseOptions, key: object
    ) -> ModelExport:
        """Return the export of an earlier engine, or a new one, which later engines share, also if it is an error."""
        if isinstance(cached_export, Exception):
            raise cached_export
        if cached_export is not None:
            return cached_export
        try:
            export = self._capture(returned, options)
        except Exception as exc:
            self.cache.keep(key, exc)
            raise
        self.cache.keep(key, export)
        return export

    def _capture(self, returned: Any, options: CaseOptions) -> ModelExport:
        model, inputs = model_and_inputs(returned)
        return self._new_export(model, inputs, None, options)

    def _new_export(self, model: Any, args: Any, kwargs: Mapping[str, Any] | None, options: CaseOptions) -> ModelExport:
        rewriters = rewriters_of(self.item, options.export.rewriters)
        return new_export(model, args, kwargs, options, self.cell.engine.target, rewriters)

    def _to_archive(self, export: ModelExport, options: CaseOptions) -> Any:
        self.exports += 1
        path = self.cache.new_archive()
        self._archives.append(path)
        return to_archive(export, self.cell.engine, options, self.settings, self.item, path)
