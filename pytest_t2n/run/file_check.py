"""The run of a cell whose test names a file: an ONNX model, or an archive of another exporter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pytest

from pytest_t2n.collect.judging import judgement_of
from pytest_t2n.collect.markers import CaseOptions, MarkerError, file_options
from pytest_t2n.config.engines import ONNXRUNTIME, cache_folder, runner_of
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import Cell
from pytest_t2n.records.from_report import DTYPE_PROPERTY, OP_PROPERTY
from pytest_t2n.run.bundles import CheckInputs, Subject, keep_in_bundle
from pytest_t2n.run.calls.requests import TO_RETURN_FILE, summary
from t2n_core.check.file import CheckedFile, check_file, file_request, open_checked
from t2n_core.errors import InputError
from t2n_core.extras import importing

if TYPE_CHECKING:
    from t2n_core.exporters.archive import ForeignArchive
    from t2n_core.parity.judging.judgement import Judgement
    from t2n_core.parity.outcome import Outcome
    from t2n_core.parity.request import CheckRequest
    from t2n_core.parity.samples import Array


class FileRun(Protocol):
    """The run of a cell, which collects outcomes."""

    item: pytest.Item
    cell: Cell
    settings: Settings
    outcomes: list[Outcome]
    tell: Callable[[str], object]

    def add(self, outcome: Outcome) -> None: ...


FileCheck: TypeAlias = "tuple[CheckedFile, CheckRequest] | Exception"
_Calls: TypeAlias = "list[tuple[Array, ...]]"
"""The arrays of each call in the order of the graph."""
_Reader: TypeAlias = "Callable[[Sequence[str], Sequence[str]], tuple[_Calls, _Calls]]"


@dataclass(frozen=True, slots=True)
class FilePaths:
    """The folder of a test's module, and the path where an ONNX model that the test returns is written."""

    folder: Path
    new_model: Path


def new_file_check(returned: Any, paths: FilePaths, options: CaseOptions, settings: Settings) -> FileCheck:
    """Return the check of a file at the inputs that a test returned, or the error of the file or the inputs.

    A test returns nothing, inputs by name, a list of these, or a pair of such lists: inputs and expected outputs. Or it
    returns a PyTorch module, which computes the expected outputs, and its inputs or a list of these; without a path in
    the marker the ONNX model, or the path of one, is before them.
    """
    __tracebackhide__ = True
    read, model = _reader_of(returned, needs_model=not options.file)
    seconds = settings.timeout if options.timeout is None else options.timeout
    try:
        path = paths.folder / (options.file or _path_of(model, paths.new_model))
        file = open_checked(path, options.sizes)
        criteria = judgement_of(options.judged_by, settings.level)
        inputs, expected = read(*file.names)
        return file, file_request(file, inputs, expected, "tract", criteria, seconds)
    except Exception as exc:
        return exc


def check_in_engine(run: FileRun, check: FileCheck) -> Iterator[tuple[Outcome, None]]:
    """Yield the outcome of a file in the engine of a cell; the check is kept in the bundles that the user requested."""
    from t2n_core.parity.outcome import Outcome

    cell = run.cell
    if isinstance(check, Exception):
        yield Outcome.from_error(check, "load", engine=cell.engine.title), None
        return
    file, request = check
    inputs = CheckInputs(cell, request, place=len(run.outcomes))
    judge = partial(check_file, file, runner_of(cell.engine), cell.engine.target, request)
    yield _judged(run.settings, file, inputs, judge, run.tell), None


def check_foreign(
    run: FileRun, result: ForeignArchive, criteria: Judgement, timeout: float, properties: Mapping[str, object]
) -> Outcome:
    """Return the outcome of another exporter's file, which is kept and explained like any other file.

    `timeout` is in seconds, `properties` are what the test has recorded so far.
    """
    cell, judge = run.cell, partial(result.check_parity, criteria, timeout=timeout)
    try:
        request = None if cell.engine.target == ONNXRUNTIME else result.check_request(criteria, timeout)
    except Exception:  # of which the check reports the same
        request = None
    if request is None:
        return replace(judge(), engine=cell.engine.title)
    subject = Subject(op=str(properties.get(OP_PROPERTY, "")), dtype=str(properties.get(DTYPE_PROPERTY, "")))
    inputs = CheckInputs(cell, request, subject, len(run.outcomes))
    return _judged(run.settings, result.file, inputs, judge, run.tell)


def _judged(
    settings: Settings,
    file: CheckedFile,
    inputs: CheckInputs,
    judge: Callable[[], Outcome],
    tell: Callable[[str], object],
) -> Outcome:
    """Return the outcome of a file, with what the user requested beside it: a bundle, and explanations of a failure."""
    engine = inputs.cell.engine
    if settings.bundle is not None:
        keep_in_bundle(settings.bundle, inputs, tell)
    outcome = replace(judge(), engine=engine.title)
    if engine.kind == "tract":
        from t2n_core.releases.loading import with_hint_on_loading

        outcome = with_hint_on_loading(outcome, file.path, engine.version, cache_folder(settings))
    return outcome if outcome.passed else _with_explanations(outcome, settings, inputs, file.origins)


def _with_explanations(
    outcome: Outcome, settings: Settings, inputs: CheckInputs, origins: Mapping[str, str]
) -> Outcome:
    """Return a failure with its releases, and the lines about its files, as far as the user requested them."""
    if settings.bisect_releases:
        from pytest_t2n.run.check import boundaries
        from t2n_core.releases.judges import archive_judge

        request = inputs.request
        outcome = outcome.with_details(boundaries(settings, lambda releases: archive_judge(releases, request)))
    if settings.reduce is not None:
        from pytest_t2n.run.failures.reduced import reduce_failure

        outcome = outcome.with_details(reduce_failure(settings, settings.reduce, inputs, origins))
    if settings.bundle_failures is not None:
        from pytest_t2n.run.failure_bundle import write_failure_bundle

        outcome = outcome.with_details(write_failure_bundle(settings.bundle_failures, inputs, outcome, origins))
    return outcome


class FileChecker:
    """The fixture `nnef_check`: checks files in the engine of a test, and records each outcome."""

    def __init__(self, run: FileRun) -> None:
        self._run = run

    def __call__(self, path: str | os.PathLike[str], inputs: Any = None, **options: Any) -> Outcome:
        """Return the outcome of a file, whose path is relative to the folder of the test's module.

        Raises:
            MarkerError: an option is unknown, or has a wrong value.
            pytest.fail.Exception: the check failed.
        """
        __tracebackhide__ = True
        run = self._run
        chosen = file_options({**options, "path": path})
        if not chosen.file:
            raise MarkerError("nnef_check needs the path of a file")
        paths = FilePaths(run.item.path.parent, Path())
        check = new_file_check(inputs, paths, chosen, run.settings)
        ((outcome, _),) = check_in_engine(run, check)
        run.add(outcome)
        if not outcome.passed:
            pytest.fail(outcome.describe(), pytrace=False)
        return outcome


def _reader_of(returned: Any, needs_model: bool) -> tuple[_Reader, Any]:
    """Return a function of the names of inputs and outputs that returns the arrays of each call, and the ONNX model.

    There is a model only if it `needs_model`. Fails a test that returned anything else.
    """
    __tracebackhide__ = True
    model, parts = None, returned if isinstance(returned, tuple) else (returned, None)
    if needs_model:
        model, parts = (parts[0], parts[1:]) if len(parts) == 3 else (None, ())
    if len(parts) == 2:
        if callable(parts[0]):
            return partial(_calls, *parts), model
        sets = [[] if part is None else [part] if isinstance(part, Mapping) else part for part in parts]
        if all(isinstance(part, list) and all(isinstance(call, Mapping) for call in part) for part in sets):
            return partial(_by_name, sets), model
    pytest.fail(f"this test returned {summary(returned)}: {TO_RETURN_FILE}", pytrace=False)


def _path_of(model: Any, path: Path) -> Path:
    """Return the path of an ONNX model, which is written to `path` if it is in memory."""
    if isinstance(model, str | os.PathLike):
        return Path(model)
    with importing("an ONNX model"):
        import onnx

    in_memory = getattr(model, "model_proto", model)  # of the ONNXProgram that torch.onnx.export returns
    if not isinstance(in_memory, onnx.ModelProto):
        raise InputError(f"the test returned {summary(model)} where an ONNX model or its path is expected")
    onnx.save(in_memory, path)
    return path


def _by_name(sets: Sequence[Sequence[Mapping[str, Any]]], *names: Sequence[str]) -> tuple[_Calls, _Calls]:
    """Return the arrays of the inputs and of the expected outputs in the order of the graph."""
    inputs, expected = ([_in_order(arrays, of) for arrays in part] for part, of in zip(sets, names, strict=True))
    return inputs, expected


def _calls(
    module: Callable[..., Any], inputs: Any, input_names: Sequence[str], output_names: Sequence[str]
) -> tuple[_Calls, _Calls]:
    """Return a PyTorch module's input arrays, and the output arrays it computes from them.

    Tensors of a dict match the file's by name, others by order. Raises InputError for another number of tensors.
    """
    import torch

    input_arrays, computed = [], []
    for arguments in inputs if isinstance(inputs, list) else [inputs]:
        if isinstance(arguments, Mapping):
            _check_names(arguments, input_names)
            call, ordered = partial(module, **arguments), tuple(arguments[name] for name in input_names)
        else:
            ordered = arguments if isinstance(arguments, tuple) else (arguments,)
            call = partial(module, *ordered)
        input_arrays.append(_leaves(ordered, input_names, "inputs"))
        with torch.no_grad():
            computed.append(_leaves(call(), output_names, "outputs"))
    return input_arrays, computed


def _leaves(values: Any, names: Sequence[str], kind: str) -> tuple[Array, ...]:
    """Return the tensors of nested containers as arrays, copies that later writes do not change."""
    from t2n_core.torch_graph.compat.private import pytree

    tensors = [leaf for leaf in pytree.tree_leaves(values) if leaf is not None]
    if len(tensors) != len(names):
        raise InputError(f"the PyTorch module has {len(tensors)} {kind}, and the file has {', '.join(names)}")
    return tuple(tensor.detach().cpu().numpy().copy() for tensor in tensors)


def _in_order(arrays: Mapping[str, Any], names: Sequence[str]) -> tuple[Array, ...]:
    """Return arrays by name in the order of the graph. Raises InputError for other names."""
    import numpy as np

    _check_names(arrays, names)
    return tuple(np.asarray(arrays[name]) for name in names)


def _check_names(arrays: Mapping[str, Any], names: Sequence[str]) -> None:
    if set(arrays) != set(names):
        raise InputError(f"the test returned arrays for {', '.join(arrays)}, and the file has {', '.join(names)}")
