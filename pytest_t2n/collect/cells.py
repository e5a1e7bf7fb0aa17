"""Which tests are cells, and what a cell is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from pytest_t2n.collect.markers import CaseOptions, MarkerError, marks_of, read_marks
from pytest_t2n.collect.names import BAD_MARK, CELL, MARKER
from pytest_t2n.config.engines import ENGINE_PARAM, SelectedEngine, engines_for

NO_ENGINE = "t2n: no engine selected"
"""How a skip reason starts; the summary counts it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A case on one engine."""

    nodeid: str
    case: str
    engine: SelectedEngine


def parametrize_engines(metafunc: pytest.Metafunc, engines: Sequence[SelectedEngine]) -> None:
    """Give a case one call per engine.

    Raises:
        pytest.Collector.CollectError: a wrong argument of the marker.
    """
    options = _read(marks_of(metafunc.definition), metafunc.definition.nodeid)
    chosen = engines_for(engines, options.targets, options.versions)
    if not chosen:
        return
    if ENGINE_PARAM not in metafunc.fixturenames:
        metafunc.fixturenames.append(ENGINE_PARAM)
    metafunc.parametrize(ENGINE_PARAM, chosen, ids=[engine.id for engine in chosen], indirect=True)


def label_items(items: Iterable[pytest.Item], engines: Sequence[SelectedEngine]) -> None:
    """Note on each case the cell it is; one without an engine is skipped with what to do about it."""
    for item in items:
        engine = _engine_of(item)
        if engine is not None:
            # not while parametrizing: pytest would take it away again as nothing that the test asks for
            from pytest_t2n.collect.rewriters import request_rewriters

            request_rewriters(item)
            item.stash[CELL] = Cell(item.nodeid, case_id(item.nodeid, engine.id), engine)
        try:
            options = read_marks(marks_of(item))
        except MarkerError as exc:  # a mark of one parameter set; those of the function were read while collecting
            item.stash[BAD_MARK] = str(exc)
            continue
        if engine is None:
            item.add_marker(pytest.mark.skip(reason=_why_no_engine(engines, options)))


def case_id(nodeid: str, engine_id: str) -> str:
    """`test_x.py::test_y[a]` of `test_x.py::test_y[a-tract-0.21.19]`."""
    head, found, tail = nodeid.rpartition(engine_id)
    if not found or not head.endswith(("-", "[")):
        return nodeid
    if head.endswith("[") and tail.startswith("]"):
        return head[:-1] + tail[1:]
    return (head[:-1] + tail) if head.endswith("-") else head + tail.removeprefix("-")


def encode_plan(cells: Iterable[Cell]) -> list[list[str]]:
    """Node id and engine of each cell, in built-in types."""
    return [[cell.nodeid, cell.engine.id] for cell in cells]


def decode_plan(
    plan: Iterable[Sequence[str]], engines: Sequence[SelectedEngine], nodeids: Iterable[str] = ()
) -> list[Cell]:
    """The cells; a node id that is among `nodeids` is that very text, which is not kept twice then."""
    by_id = {engine.id: engine for engine in engines}
    same = {nodeid: nodeid for nodeid in nodeids}
    return [Cell(same.get(nodeid, nodeid), case_id(nodeid, engine), by_id[engine]) for nodeid, engine in plan]


def guess_plan(nodeids: Iterable[str], engines: Sequence[SelectedEngine]) -> list[Cell]:
    """The cells among node ids, from how they end; where no worker could say it."""
    found = []
    for nodeid in nodeids:
        for engine in engines:
            case = case_id(nodeid, engine.id)
            if case != nodeid and nodeid.endswith(f"{engine.id}]"):
                found.append(Cell(nodeid, case, engine))
                break
    return found


def _read(marks: Sequence[pytest.Mark], nodeid: str) -> CaseOptions:
    try:
        return read_marks(marks)
    except MarkerError as exc:
        raise pytest.Collector.CollectError(f"{nodeid}: @pytest.mark.{MARKER}: {exc}") from None


def _engine_of(item: pytest.Item) -> SelectedEngine | None:
    callspec = getattr(item, "callspec", None)
    engine = callspec.params.get(ENGINE_PARAM) if callspec is not None else None
    return engine if isinstance(engine, SelectedEngine) else None


def _why_no_engine(engines: Sequence[SelectedEngine], options: CaseOptions) -> str:
    targets = " or ".join(options.targets)
    if options.versions is not None and engines_for(engines, options.targets):
        return f"t2n: versions={','.join(options.versions)!r} of the marker leaves none of the selected tract versions"
    ways = {"tract": "--t2n-tract=0.21,0.23", "khronos": "--t2n-khronos"}
    return f"{NO_ENGINE} for {targets}; select with {' or '.join(ways[target] for target in options.targets)}"


__all__ = [
    "NO_ENGINE",
    "Cell",
    "case_id",
    "decode_plan",
    "encode_plan",
    "guess_plan",
    "label_items",
    "parametrize_engines",
]
