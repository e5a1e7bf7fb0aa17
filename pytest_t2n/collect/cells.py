"""Cells of a session: each marked test is parametrized with one call per engine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from pytest_t2n.collect.markers import CaseOptions, MarkerError, marks_of, read_marks
from pytest_t2n.collect.names import ENGINE_PARAM, is_case, marker_of
from pytest_t2n.collect.rewriters import request_rewriters
from pytest_t2n.collect.targets import OTHER_NAME
from pytest_t2n.config.engines import ONNXRUNTIME, engines_for
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.nodeids import case_id
from t2n_core.errors import T2NError
from t2n_core.text import storable

NO_ENGINE = "t2n: no engine selected"
"""Prefix of a skip reason that the summary counts."""
_LATE = (
    "t2n: the marker was added after marked tests were parametrized with engines, so the test's result is not checked; "
    "mark the function, its class or its module (pytestmark), or a folder in pytest_collectstart: "
    "`if isinstance(collector, pytest.Module): collector.add_marker(pytest.mark.nnef_export)`"
)
_NO_MARKER = "t2n: the marker was added to metafunc.definition, and its tests do not inherit it; mark the function"
_OF_UNITTEST = (
    "t2n: a method of a unittest.TestCase takes no parameters, so it cannot run once for each engine; "
    "make it a function, or call t2n_core.assert_nnef_parity in it"
)


def parametrize_engines(
    metafunc: pytest.Metafunc, engines: Sequence[SelectedEngine], target_kinds: dict[str, type] | None = None
) -> None:
    """Parametrize a case with one call per engine; `target_kinds` are the classes of the user's targets by name.

    Raises:
        pytest.Collector.CollectError: an argument of the marker is wrong, or two targets have one name.
    """
    try:
        options = read_marks(marks_of(metafunc.definition))
    except MarkerError as exc:
        name = marker_of(metafunc.definition)
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: @pytest.mark.{name}: {exc}") from None
    try:
        _require_unique(options, {} if target_kinds is None else target_kinds)
        chosen = engines_of_case(engines, options, metafunc.config)
    except (T2NError, ValueError) as exc:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {exc}") from None
    if not chosen:
        return
    if ENGINE_PARAM not in metafunc.fixturenames:
        metafunc.fixturenames.append(ENGINE_PARAM)
    metafunc.parametrize(ENGINE_PARAM, chosen, ids=[engine.id for engine in chosen], indirect=True)


def _require_unique(options: CaseOptions, classes: dict[str, type]) -> None:
    """Add the classes of a test's own targets. Raises ValueError if another class has the same name in this session."""
    for entry in options.own.values():
        other = classes.setdefault(entry.name, entry.kind)
        if other is not entry.kind:
            both = " and ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in (other, entry.kind))
            raise ValueError(f"both {both} are called `{entry.name}`, which is one column of the results; {OTHER_NAME}")


def engines_of_case(
    engines: Sequence[SelectedEngine], options: CaseOptions, config: pytest.Config
) -> list[SelectedEngine]:
    """Return a test's engines: the session's engines that fit, and the engines of the user's targets.

    Raises:
        T2NError: the engine of a user's target, or an exporter of the marker, is not available.
        ValueError: a user's target cannot be created.
    """
    built_in = [target for target in options.targets if target not in options.own]
    beside = [ONNXRUNTIME] if "tract" in built_in else []
    chosen = _with_exporters(engines_for(engines, [*built_in, *beside], options.versions), options, config)
    engines = [engine for engine in engines if not engine.exporter]
    for own_target in options.own.values():
        fitting = engines_for(engines, (own_target.runs_on,), options.versions) if own_target.runs_on else engines
        chosen += own_target.engines(fitting)
    return chosen


def _with_exporters(
    engines: Sequence[SelectedEngine], options: CaseOptions, config: pytest.Config
) -> list[SelectedEngine]:
    """Return the engines of a test for its exporters.

    Only this package's exporter generates tokens and writes programs; a file has no exporter.
    """
    if options.generate is not None or options.program or options.file is not None:
        return [engine for engine in engines if not engine.exporter]
    if not options.exporters:
        return list(engines)
    from pytest_t2n.config.exporters import engines_by_exporter, exporters_of_test
    from pytest_t2n.config.settings import read_settings

    without_exporter = {
        (engine.target, engine.label): replace(engine, exporter="", exporter_version="")
        for engine in engines
        if engine.target != ONNXRUNTIME
    }
    classes = exporters_of_test(config, options.exporters)
    return engines_by_exporter(options.exporters, list(without_exporter.values()), read_settings(config), classes)


def cells_of_items(items: Iterable[pytest.Item]) -> dict[pytest.Item, Cell]:
    """Return the cell of each item with an engine, and request the fixture of rewriters for it."""
    cells = {}
    for item in items:
        engine = _engine_of(item)
        if engine is not None:
            # not while parametrizing: pytest would remove it again since the test does not request it
            request_rewriters(item)
            nodeid = storable(item.nodeid)
            cells[item] = Cell(nodeid, case_id(nodeid, engine.id), engine)
    return cells


def require_own_names(cells: Mapping[pytest.Item, Cell]) -> None:
    """Raise pytest.UsageError if two cells have one node id: they would share one export and one record.

    One test that the command line names twice is no other cell.
    """
    identities: dict[str, tuple[object, str]] = {}
    for item, cell in cells.items():
        identity = (getattr(item, "function", None), getattr(getattr(item, "callspec", None), "id", ""))
        if identities.setdefault(cell.nodeid, identity) != identity:
            raise pytest.UsageError(
                f"t2n: two cells have the node id {cell.nodeid!r}, so that only one would be proven; "
                "look for a hook of a conftest.py that changes names, or for ids of parameters that differ in escapes"
            )


def _engine_of(item: pytest.Item) -> SelectedEngine | None:
    callspec = getattr(item, "callspec", None)
    engine = callspec.params.get(ENGINE_PARAM) if callspec is not None else None
    return engine if isinstance(engine, SelectedEngine) else None


def has_engine(item: pytest.Item) -> bool:
    """Return whether an item has an engine among its parameters."""
    return _engine_of(item) is not None


def why_unproven(item: pytest.Item, engines: Sequence[SelectedEngine]) -> str:
    """Return why a case proves nothing although a selected engine fits it, or ''. Raises MarkerError."""
    if not engines:
        return ""
    if _is_of_unittest(item):
        return _OF_UNITTEST
    if has_engine(item):
        return "" if is_case(item, getattr(item, "fixturenames", ())) else _NO_MARKER
    options = read_marks(marks_of(item))
    return _LATE if engines_of_case(engines, options, item.config) else ""


def why_no_engine(item: pytest.Item, engines: Sequence[SelectedEngine]) -> str:
    """Return why no engine fits a case, and what to do about it. Raises MarkerError."""
    if _is_of_unittest(item):
        return _OF_UNITTEST
    return _why_no_engine(engines, read_marks(marks_of(item)), item.config)


def _is_of_unittest(item: pytest.Item) -> bool:
    unittest = sys.modules.get("unittest")
    return unittest is not None and issubclass(getattr(item, "cls", None) or object, unittest.TestCase)


def _why_no_engine(engines: Sequence[SelectedEngine], options: CaseOptions, config: pytest.Config) -> str:
    if options.versions is not None and engines_of_case(engines, replace(options, versions=None), config):
        versions = ",".join(item.text for item in options.versions)
        return f"t2n: versions={versions!r} of the marker leaves none of the selected tract versions"
    if any(engine.target in options.targets for engine in engines):
        return "t2n: other exporters have no column in this test; --t2n-exporter=t2n,NAME has this package's too"
    ways = {"tract": "--t2n-tract=0.21,0.23", "khronos": "--t2n-khronos"}
    needed = [options.own[target].runs_on or "tract" if target in options.own else target for target in options.targets]
    words = " or ".join(dict.fromkeys(ways[target] for target in needed))
    return f"{NO_ENGINE} for {' or '.join(options.targets)}; select with {words}"
