"""The exporters of a session: each has a column for every engine that reads its files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.config.engines import ONNXRUNTIME, cache_folder
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.nodeids import OWN_EXPORTER
from t2n_core.exporters.registry import check_names, find_exporter, name_of

if TYPE_CHECKING:
    from t2n_core.exporters.exporter import Exporter


def registered_exporters(config: pytest.Config) -> dict[str, Any]:
    """Return the classes that conftests and plugins register for a session, by name.

    Raises InputError for a class whose name is missing, invalid or reserved.
    """
    results: Sequence[Any] = config.hook.pytest_t2n_exporters(config=config)
    return {name_of(kind): kind for kinds in reversed(results) for kind in kinds or ()}


def exporters_of_test(config: pytest.Config, marked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes of `registered_exporters`, and those in a test's marker; `marked` has None for mere names."""
    return registered_exporters(config) | {name: kind for name, kind in marked.items() if kind is not None}


def environments_of(settings: Settings) -> Path:
    """Return the folder with the environments of exporters."""
    from t2n_core.exporters.environment import environments_folder

    return environments_folder(cache_folder(settings))


def engines_by_exporter(
    names: Collection[str], engines: Sequence[SelectedEngine], settings: Settings, others: Mapping[str, Any]
) -> list[SelectedEngine]:
    """Return the engines of each of these exporters in turn; `others` are classes of the session by name.

    Raises InputError for an unknown exporter, or one whose requirements are not installed.
    """
    check_names(names, [OWN_EXPORTER, *others])
    return [
        engine
        for name in names
        for engine in (engines if name == OWN_EXPORTER else _engines_of(find_exporter(name, others), engines, settings))
    ]


def _engines_of(exporter: Exporter, engines: Sequence[SelectedEngine], settings: Settings) -> list[SelectedEngine]:
    """Return the engines that read the files of an exporter other than this package's own."""
    from t2n_core.exporters.environment import python_of, version_of

    if exporter.requirements:
        python_of(exporter, environments_of(settings))
    readers = [engine for engine in engines if engine.target == "tract" or exporter.writes_standard]
    if settings.onnxruntime and exporter.format == "onnx" and readers:
        readers.append(_onnxruntime(readers[0].platform))
    version = version_of(exporter, environments_of(settings))
    return [replace(engine, exporter=exporter.name, exporter_version=version) for engine in readers]


def _onnxruntime(platform: str) -> SelectedEngine:
    """Return onnxruntime as an engine. Raises MissingPackageError without it."""
    from t2n_core.exporters.runtime import OnnxRuntimeEngine

    version = OnnxRuntimeEngine().version
    return SelectedEngine(ONNXRUNTIME, version, version, platform=platform)
