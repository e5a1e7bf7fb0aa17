"""Merging the records of several sessions: complete, disjoint and of one plan, or an error that says what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pytest_t2n.records.completeness import completeness_of, last_plan
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    EndLine,
    EngineLine,
    PlanLine,
    Record,
    RecordError,
    RunLine,
    cells_of,
    graphs_of,
    with_graphs,
)

_NAMED = 10
_SHARD_OPTION = "--t2n-shard"


def merge_records(
    files: Mapping[str, Sequence[Record]], *, allow_rerun: bool = False, allow_incomplete: bool = False
) -> list[Record]:
    """Return one run line, the plan, the cells in its order, each graph before the first cell that has it, the end.

    Shards must be all of one plan, each once. Other files, such as of other engines, must be disjoint; with
    `allow_rerun` the last file wins where a cell is in several. With `allow_incomplete` files need not be whole: the
    result has no plan, or no end, where one of them has none.

    Raises:
        RecordError: a file is not whole, a cell is missing or in two files, or the files have different plans.
    """
    if not allow_incomplete:
        states = {name: completeness_of(records) for name, records in files.items()}
        unfinished = [f"{name}: {state.notice}" for name, state in states.items() if not state.whole]
        _refuse("not whole (--allow-incomplete takes what is there)", unfinished)
    plans = {name: [line for line in records if isinstance(line, PlanLine)] for name, records in files.items()}
    order = _check_shards(plans) if any(line.shard for lines in plans.values() for line in lines) else []
    cells: dict[str, CellLine] = {}
    origin: dict[str, str] = {}
    twice: list[str] = []
    for name, records in files.items():
        for cell in cells_of(records):
            if cell.nodeid in cells and not allow_rerun:
                twice.append(f"{cell.nodeid} ({origin[cell.nodeid]} and {name})")
            cells[cell.nodeid], origin[cell.nodeid] = cell, name
    _refuse("in more than one file", twice)
    if order:
        if not allow_incomplete:
            _refuse("planned and in no file", [nodeid for nodeid in order if nodeid not in cells])
        known = set(order)
        _refuse("in a file and not planned", [nodeid for nodeid in cells if nodeid not in known])
        cells = {nodeid: cells[nodeid] for nodeid in order if nodeid in cells}
    runs = [line for records in files.values() for line in records if isinstance(line, RunLine)]
    merged: list[Record] = [_merge_runs(runs)] if runs else []
    merged += _merge_plans([last_plan(records) for records in files.values()])
    graphs = {key: text for records in files.values() for key, text in graphs_of(records).items()}
    merged += with_graphs(cells.values(), graphs)
    return [*merged, *_merge_ends([records[-1] if records else None for records in files.values()])]


def _check_shards(plans: Mapping[str, Sequence[PlanLine]]) -> list[str]:
    """Return the planned node ids."""
    whole = [name for name, lines in plans.items() if not lines or not lines[-1].shard]
    _refuse("beside files of shards, and no shard", whole)
    digests: dict[str, str] = {}
    shards: dict[str, str] = {}
    first = next(lines[-1] for lines in plans.values())
    for name, lines in plans.items():
        plan = lines[-1]
        digests.setdefault(plan.sha256, name)
        if plan.shard in shards:
            raise RecordError(f"shard {plan.shard} is there twice: {shards[plan.shard]} and {name}")
        shards[plan.shard] = name
    counts = {shard.partition("/")[2] for shard in shards}
    if len(digests) > 1 or len(counts) > 1:
        where = ", ".join(digests.values()) if len(digests) > 1 else ", ".join(sorted(shards))
        raise RecordError(f"these are shards of different plans (other tests, engines or counts): {where}")
    count = int(counts.pop())
    missing = [f"{index}/{count}" for index in range(1, count + 1) if f"{index}/{count}" not in shards]
    if missing:
        raise RecordError(f"shards are missing: {', '.join(missing)}")
    return first.nodeids


def _merge_plans(plans: Sequence[PlanLine | None]) -> list[PlanLine]:
    """Return the plan of all cells, which is of no shard; nothing if a file has no plan."""
    known = [plan for plan in plans if plan is not None]
    if len(known) < len(plans):
        return []
    cells: dict[str, dict[str, None]] = {}
    for plan in known:
        for engine, nodeids in plan.cells.items():
            cells.setdefault(engine, {}).update(dict.fromkeys(nodeids))
    digests = {plan.sha256 for plan in known}
    return [
        PlanLine(
            SCHEMA,
            sha256=digests.pop() if len(digests) == 1 else "",
            cells={engine: list(nodeids) for engine, nodeids in cells.items()},
        )
    ]


def _merge_ends(last: Sequence[Record | None]) -> list[EndLine]:
    """Return the end of the session that ended last; nothing if a file has no end."""
    known = [line for line in last if isinstance(line, EndLine)]
    if len(known) < len(last):
        return []
    stopped = dict.fromkeys(line.stopped for line in known if line.stopped)
    return [EndLine(SCHEMA, max(line.ended for line in known), "; ".join(stopped))]


def _merge_runs(runs: Sequence[RunLine]) -> RunLine:
    engines: dict[str, EngineLine] = {}
    for run in runs:
        for engine in run.engines:
            known = engines.setdefault(engine.title, engine)
            if known.sha256 != engine.sha256:
                raise RecordError(f"{engine.title} is another binary in each of these files")
    for name, version in ((name, version) for run in runs for name, version in run.versions.items()):
        others = {run.versions[name] for run in runs if name in run.versions} - {version}
        if others:
            raise RecordError(f"these runs had different versions of {name}: {', '.join(sorted({version, *others}))}")
    if len({run.level for run in runs}) > 1:
        raise RecordError("these runs had different levels (--t2n-level)")
    first = min(runs, key=lambda run: run.started)
    changed: dict[str, Any] = {
        "engines": list(engines.values()),
        "arguments": [one for one in first.arguments if not one.startswith(f"{_SHARD_OPTION}=")],
    }
    return msgspec.structs.replace(first, **changed)


def _refuse(problem: str, names: Sequence[str]) -> None:
    if names:
        shown = "".join(f"\n  {name}" for name in names[:_NAMED])
        more = f"\n  … and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise RecordError(f"{len(names)} {problem}:{shown}{more}")


__all__ = ["merge_records"]
