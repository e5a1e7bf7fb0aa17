"""The export of a cell by another exporter, which writes one file for all releases that share it."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import pytest

from pytest_t2n.collect.markers import CaseOptions
from pytest_t2n.config.engines import runner_of
from pytest_t2n.config.exporters import environments_of, exporters_of_test
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import SelectedEngine
from t2n_core.engine.paths import EnginePath, parse_paths
from t2n_core.errors import T2NError
from t2n_core.exporters.registry import find_exporter
from t2n_core.scratch import ScratchFolder

if TYPE_CHECKING:
    from t2n_core.export.model import ModelExport
    from t2n_core.exporters.archive import ForeignArchive
    from t2n_core.exporters.exporter import DeclaredSizes, Exporter

_EXPORT_SECONDS: Final = 120.0
"""Least limit of an export, which takes longer than a run of the engine."""


class _File(NamedTuple):
    """A file with the sizes that it is declared for, and the seconds of its export."""

    path: Path
    declared: DeclaredSizes
    seconds: float


class _Refusal(NamedTuple):
    """The error of an export, without its traceback, which would keep the model."""

    kind: type[T2NError]
    message: str
    hint: str | None


class _Files:
    """The files of one model by exporter and release, kept until the model is gone."""

    def __init__(self, settings: Settings, module: str) -> None:
        """Take the name of the test's module, which an exporter's process imports: it may prepare libraries."""
        self._settings, self._module = settings, module
        self._folder = ScratchFolder()
        self._written: dict[tuple[str, str], _File | _Refusal] = {}

    def of(self, export: ModelExport, exporter: Exporter, release: str) -> _File:
        """Return the file of an exporter for a release.

        Raises RefusedError, and InputError if the exporter's requirements are not installed.
        """
        key = (exporter.name, release if exporter.follows_release else "")
        if key not in self._written:
            try:
                self._written[key] = self._write(export, exporter, release)
            except T2NError as refusal:
                self._written[key] = _Refusal(type(refusal), refusal.message, refusal.hint)
        written = self._written[key]
        if isinstance(written, _Refusal):
            raise written.kind(written.message, hint=written.hint)
        return written

    def _write(self, export: ModelExport, exporter: Exporter, release: str) -> _File:
        from t2n_core.exporters.process import write_file
        from t2n_core.exporters.request import request_of

        source = None
        if exporter.converts:
            source = self.of(export, find_exporter(exporter.converts, {}), release)
        path = self._folder.path / f"{len(self._written)}{exporter.suffix}"
        seconds = max(self._settings.timeout, _EXPORT_SECONDS)
        with export.mode():
            request = request_of(export, exporter, release, path)
            if source is not None:
                request = replace(request, source=source.path)
            began = time.perf_counter()
            declared = write_file(exporter, request, seconds, environments_of(self._settings), [self._module])
        duration = time.perf_counter() - began
        return (
            _File(path, declared, duration)
            if source is None
            else _File(path, source.declared, duration + source.seconds)
        )

    def __del__(self) -> None:
        self._folder.remove()


_FILES: Final[WeakKeyDictionary[Any, _Files]] = WeakKeyDictionary()


def export_by_other(
    export: ModelExport,
    engine: SelectedEngine,
    options: CaseOptions,
    settings: Settings,
    item: pytest.Function,
    path: Path,
) -> ForeignArchive:
    """Return the file that the exporter of a cell writes of a model, as a copy beside `path` with its own suffix.

    Raises RefusedError, and InputError for an unknown exporter.
    """
    from t2n_core.exporters.archive import ForeignArchive, Profile

    exporter = find_exporter(engine.exporter, exporters_of_test(item.config, options.exporters))
    if export not in _FILES:
        _FILES[export] = _Files(settings, item.module.__name__)
    file = _FILES[export].of(export, exporter, engine.version)
    archive = path.with_name(f"{path.name}{exporter.suffix}")
    shutil.copyfile(file.path, archive)
    runner = runner_of(_without_fixed_symbols(engine))
    profile, times = Profile(settings.judge), {"export": file.seconds}
    return ForeignArchive(archive, export, exporter, file.declared, runner, profile, times)


def _without_fixed_symbols(engine: SelectedEngine) -> SelectedEngine:
    """Return the engine without the path on which symbols are fixed: a file has its exporter's names for them."""
    if engine.resolved is None:
        return engine
    paths = [path for path in parse_paths(engine.resolved.get("paths", "")) if path is not EnginePath.FIXED_SYMBOLS]
    return replace(engine, resolved={**engine.resolved, "paths": ",".join(paths)})
