"""One cell from the test function to its outcome."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_t2n.collect.cells import Cell
from pytest_t2n.collect.markers import CaseOptions, marks_of, read_marks
from pytest_t2n.collect.rewriters import rewriters_of
from pytest_t2n.config.engines import SelectedEngine
from pytest_t2n.config.settings import Settings
from pytest_t2n.run.export_summary import Contents, contents_of
from t2n_core.errors import T2NError

if TYPE_CHECKING:
    from t2n_core.check.outcome import Outcome
    from t2n_core.export import ExportResult, ModelExport

_WHAT_TO_RETURN = (
    "a test marked nnef_export returns (model, inputs), where inputs are a tuple of tensors, a dict of name to tensor, "
    "or one tensor; or it takes the fixture `nnef_export` and calls it"
)

_GRAVITY = {"mismatch": 0, "crash": 1, "timeout": 2, "oom": 3, "error": 4}
"""Of several failures in one test the worst is its outcome; wrong numbers nobody notices come first."""


_BEFORE_GRAPHS = ("setup", "capture")
"""Stages at which there is nothing to tell of an export yet, and asking would capture again."""


class Converter(NamedTuple):
    """The classes of the converter that the plugin uses."""

    model_export: type[ModelExport]
    tract: Callable[..., Any]
    khronos: Callable[..., Any]


def load_converter() -> Converter:
    """Imported at the first cell that runs, never while collecting: this imports torch."""
    from t2n_core.export import ModelExport
    from t2n_core.inference_target import KhronosNNEF, TractNNEF

    if "PYTEST_XDIST_WORKER" in os.environ:
        import torch

        # Each worker would otherwise start as many threads as the machine has cores.
        torch.set_num_threads(1)
    return Converter(ModelExport, TractNNEF, KhronosNNEF)


class ExportCache:
    """What the cells of this process share: the model of the current case, for the engines that come next (no more than
    one, for memory), and the folder of their archives."""

    def __init__(self) -> None:
        self._key: object = None
        self._export: ModelExport | Exception | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._archives = 0

    def find(self, key: object) -> ModelExport | Exception | None:
        """The export of `key`, or why there is none; one of another case is dropped, since cases do not come back."""
        if self._key != key:
            self.clear()
        return self._export

    def keep(self, key: object, export: ModelExport | Exception) -> None:
        self._key, self._export = key, export

    def clear(self) -> None:
        self._key = self._export = None

    def new_archive(self) -> Path:
        """A path that no archive has had; whoever asks removes it. One folder for all: it costs more than a cell."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="t2n-", ignore_cleanup_errors=True)
        self._archives += 1
        return Path(self._folder.name) / f"model_{self._archives}.tar"

    def close(self) -> None:
        """At the end of the session."""
        self.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class CellRun:
    """What happens to one cell while its test runs."""

    def __init__(self, item: pytest.Item, cell: Cell, settings: Settings, cache: ExportCache) -> None:
        self.item, self.cell, self.settings, self.cache = item, cell, settings, cache
        self.marks = marks_of(item)
        self.outcomes: list[Outcome] = []
        self.contents: list[Contents] = []
        """Of the export behind each outcome."""
        self.exports = 0
        self._archives: list[Path] = []

    @property
    def outcome(self) -> Outcome | None:
        """The gravest failure, else the pass that needed the loosest level; None if nothing was exported."""
        return decisive(self.outcomes)

    def add(self, outcome: Outcome, export: Any = None, archive: Path | None = None) -> None:
        """Note an outcome, with what was exported."""
        self.outcomes.append(outcome)
        captured = export is not None and outcome.stage.value not in _BEFORE_GRAPHS
        self.contents.append(contents_of(export, archive) if captured else Contents())

    def decisive_contents(self) -> Contents:
        """The graph of the decisive export, and the operators of all."""
        outcome = self.outcome
        chosen = next((c for o, c in zip(self.outcomes, self.contents, strict=True) if o is outcome), Contents())
        ops = dict.fromkeys(op for contents in self.contents for op in contents.ops)
        dtype = chosen.dtype or next((contents.dtype for contents in self.contents if contents.dtype), "")
        return replace(chosen, ops=tuple(ops), dtype=dtype)

    def check_returned(self, test: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Run a test that returns its model; what it raises itself passes through.

        Raises:
            pytest.fail.Exception: the cell failed, with everything a user needs to read and no traceback.
        """
        from t2n_core.check.outcome import Outcome

        __tracebackhide__ = True
        options = read_marks(self.marks)
        # A khronos graph has no symbols: its capture is another one.
        key = (self.cell.case, options.dynamic_axes is not None and self.cell.engine.target == "khronos")
        known = self.cache.find(key)
        returned = self._call(test, arguments) if known is None else None
        export: ModelExport | None = None
        try:
            export = self._take(known, returned, options, key)
            result = self._to_archive(export, options)
        except Exception as exc:
            outcome = Outcome.from_error(exc, "lower", engine=self.cell.engine.title)
            self.add(outcome, export)
        else:
            outcome = self._checked(result, options.tolerance, None)
            self.add(outcome, export, result.archive)
        self.close()
        if not outcome.passed:
            pytest.fail(outcome.describe(), pytrace=False)

    def export(
        self, model: Any, args: Any = None, *, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> CheckedExport:
        """What the fixture `nnef_export` gives: export `model` for this test's engine.

        A ModelExport as `model` has its arguments already, and brings its capture along.

        Raises:
            T2NError: of the stage that failed.
            MarkerError: an unknown option.
        """
        from t2n_core.check.outcome import Outcome

        __tracebackhide__ = True
        merged = read_marks(self.marks, options)
        export = None
        try:
            known = isinstance(model, load_converter().model_export)
            export = model if known else self._model_export(model, args, kwargs, merged)
            result = self._to_archive(export, merged)
        except Exception as exc:
            self.add(Outcome.from_error(exc, "lower", engine=self.cell.engine.title), export)
            if isinstance(exc, T2NError):
                # Its message says what and where; our frames would bury it.
                raise exc.with_traceback(None) from None
            raise
        return CheckedExport(self, result, merged)

    def check(self, result: ExportResult, tolerance: Any, timeout: float | None) -> Outcome:
        """Compare in the engine and note the outcome."""
        outcome = self._checked(result, tolerance, timeout)
        self.add(outcome, getattr(result, "export", None), result.archive)
        return outcome

    def close(self) -> None:
        """Remove the archives."""
        for archive in self._archives:
            with suppress(OSError):
                archive.unlink(missing_ok=True)
        self._archives.clear()

    def _call(self, test: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True
        with _seeded(self.cell.case):
            return test(**arguments)

    def _take(
        self, known: ModelExport | Exception | None, returned: Any, options: CaseOptions, key: object
    ) -> ModelExport:
        """What an earlier engine left, or a new export; the engines that come next get the same, also a refusal."""
        if isinstance(known, Exception):
            raise known
        if known is not None:
            return known
        try:
            export = self._capture(returned, options)
        except Exception as exc:
            self.cache.keep(key, exc)
            raise
        self.cache.keep(key, export)
        return export

    def _capture(self, returned: Any, options: CaseOptions) -> ModelExport:
        if inspect.iscoroutine(returned):
            returned.close()
            pytest.fail(f"this test is async: {_WHAT_TO_RETURN}", pytrace=False)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            pytest.fail(f"this test returned {_summary(returned)}: {_WHAT_TO_RETURN}", pytrace=False)
        model, inputs = returned
        if inputs is None or isinstance(inputs, str | bytes):
            pytest.fail(f"the inputs of this test are {_summary(inputs)}: {_WHAT_TO_RETURN}", pytrace=False)
        return self._model_export(model, inputs, None, options)

    def _model_export(
        self, model: Any, args: Any, kwargs: Mapping[str, Any] | None, options: CaseOptions
    ) -> ModelExport:
        dynamic = None if self.cell.engine.target == "khronos" else options.dynamic_axes
        return load_converter().model_export(
            model,
            args,
            kwargs,
            input_names=options.input_names,
            output_names=options.output_names,
            dynamic_axes=dynamic,
            extra_inputs=options.inputs,
            rewriters=rewriters_of(self.item, options.rewriters),
            strict_rewrites=options.strict_rewrites,
            fn_name=options.fn_name,
            capture=options.capture,
            nnef_variable_naming_scheme=options.nnef_variable_naming_scheme,
        )

    def _to_archive(self, export: ModelExport, options: CaseOptions) -> ExportResult:
        self.exports += 1
        path = self.cache.new_archive()
        self._archives.append(path)
        return export.to(self._target(options), path)

    def _target(self, options: CaseOptions) -> Any:
        engine, converter = self.cell.engine, load_converter()
        more = options.options_of(engine.target)
        if engine.target == "khronos":
            return converter.khronos(engine.version, **more)
        return converter.tract(engine.version, engine=_resolved(engine), dynamic_axes=options.dynamic_axes, **more)

    def _checked(self, result: ExportResult, tolerance: Any, timeout: float | None) -> Outcome:
        from pytest_t2n.run.check import check_result

        required = tolerance or self.settings.level
        seconds = self.settings.timeout if timeout is None else timeout
        return check_result(self.cell, self.settings, result, required, seconds).with_times(result.times)


class CheckedExport:
    """An `ExportResult` whose checks end in the matrix; everything else is the result's own."""

    def __init__(self, run: CellRun, result: ExportResult, options: CaseOptions) -> None:
        self._run, self._result, self._options = run, result, options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def check_parity(self, tolerance: Any = None, *, timeout: float | None = None) -> Outcome:
        """Compare in the engine of this test; never raises for what the engine does or computes."""
        return self._run.check(self._result, tolerance or self._options.tolerance, timeout)

    def assert_parity(self, tolerance: Any = None, *, timeout: float | None = None) -> Outcome:
        """As `check_parity`.

        Raises:
            T2NError: the subclass that fits the failure; ParityError for other numbers.
        """
        __tracebackhide__ = True
        return self.check_parity(tolerance, timeout=timeout).raise_for_failure()

    def note(self, outcome: Outcome) -> Outcome:
        """The outcome of another check of this archive, which then stands in the matrix."""
        self._run.add(outcome, getattr(self._result, "export", None), self._result.archive)
        return outcome


def decisive(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The one that stands for all checks of a cell."""
    failures = [outcome for outcome in outcomes if not outcome.passed]
    if failures:
        return min(failures, key=lambda outcome: _GRAVITY.get(outcome.status.value, len(_GRAVITY)))
    return max(outcomes, key=lambda outcome: outcome.level.rank if outcome.level else -1, default=None)


def arguments_of(function: pytest.Function) -> dict[str, Any]:
    """The fixtures and parameters that a test function takes."""
    taken = {}
    for name, parameter in inspect.signature(function.obj).parameters.items():
        if name in function.funcargs and parameter.default is inspect.Parameter.empty:
            taken[name] = function.funcargs[name]
    return taken


@contextmanager
def _seeded(case: str) -> Iterator[None]:
    """The same random weights for a case in every session and worker; torch's own state is put back."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    seed, generator = zlib.crc32(case.encode()), torch.random.default_generator
    state = generator.get_state()
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        # `torch.manual_seed` would keep the text of a stack for each device that may be there one day.
        generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(state)


def _resolved(engine: SelectedEngine) -> Any:
    from t2n_core.engine import ResolvedEngine

    return None if engine.resolved is None else ResolvedEngine.from_dict(engine.resolved)


def _summary(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


__all__ = ["CellRun", "CheckedExport", "Converter", "ExportCache", "arguments_of", "decisive", "load_converter"]
