"""Merging the records of several sessions: complete, disjoint and of one plan, or an error that says what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from pytest_t2n.records.completeness import completeness_of, last_plans
from pytest_t2n.records.platform import on_platforms, with_platform_names
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
_SHARD_OPTIONS = ("--t2n-shard=", "--t2n-durations=")


def merge_records(
    files: Mapping[str, Sequence[Record]], *, allow_rerun: bool = False, allow_incomplete: bool = False
) -> list[Record]:
    """Return one run line, the plan, the cells in its order, each graph before the first cell that has it, the end.

    Shards must be all of one plan, each once. Other files, such as of other engines, must be disjoint; with
    `allow_rerun` the last file wins where a cell is in several. The same cell on another platform is another cell:
    where files come from several, each has its plan, and the platform is a part of the column's title. With
    `allow_incomplete` files need not be whole: the result has no plan, or no end, where one of them has none.

    Raises:
        RecordError: a file is not whole, a cell is missing or in two files, or the files have different plans.
    """
    if not allow_incomplete:
        states = {name: completeness_of(records) for name, records in files.items()}
        unfinished = [f"{name}: {state.notice}" for name, state in states.items() if not state.whole]
        _refuse("not whole (--allow-incomplete takes what is there)", unfinished)
    files = {name: on_platforms(records) for name, records in files.items()}
    plans = {name: [line for line in records if isinstance(line, PlanLine)] for name, records in files.items()}
    order = _check_shards(plans) if any(line.shard for lines in plans.values() for line in lines) else []
    cells: dict[tuple[str, str], CellLine] = {}
    origin: dict[tuple[str, str], str] = {}
    twice: list[str] = []
    for name, records in files.items():
        for cell in cells_of(records):
            key = cell.nodeid, "" if order else cell.platform  # shards have each cell once, wherever they ran
            if key in cells and not allow_rerun:
                twice.append(f"{cell.nodeid} ({origin[key]} and {name})")
            cells[key], origin[key] = cell, name
    _refuse("in more than one file", twice)
    if order:
        found = dict.fromkeys(nodeid for nodeid, _ in cells)
        if not allow_incomplete:
            _refuse("planned and in no file", [nodeid for nodeid in order if nodeid not in found])
        places = {nodeid: place for place, nodeid in enumerate(order)}
        _refuse("in a file and not planned", [nodeid for nodeid in found if nodeid not in places])
        cells = dict(sorted(cells.items(), key=lambda pair: places[pair[0][0]]))
    runs = [line for records in files.values() for line in records if isinstance(line, RunLine)]
    merged: list[Record] = [_merge_runs(runs)] if runs else []
    merged += _merge_plans([last_plans(records) for records in files.values()])
    graphs = {key: text for records in files.values() for key, text in graphs_of(records).items()}
    merged += with_graphs(cells.values(), graphs)
    merged += _merge_ends([records[-1] if records else None for records in files.values()])
    return with_platform_names(merged)


def _check_shards(plans: Mapping[str, Sequence[PlanLine]]) -> list[str]:
    """Return the planned node ids."""
    whole = [name for name, lines in plans.items() if not lines or not lines[-1].shard]
    _refuse("beside files of shards, and no shard", whole)
    digests: dict[str, str] = {}
    cuts: dict[str, str] = {}
    shards: dict[str, str] = {}
    first = next(lines[-1] for lines in plans.values())
    for name, lines in plans.items():
        plan = lines[-1]
        digests.setdefault(plan.sha256, name)
        cuts.setdefault(plan.cut, name)
        if plan.shard in shards:
            raise RecordError(f"shard {plan.shard} is there twice: {shards[plan.shard]} and {name}")
        shards[plan.shard] = name
    counts = {shard.partition("/")[2] for shard in shards}
    if len(digests) > 1 or len(counts) > 1:
        where = ", ".join(digests.values()) if len(digests) > 1 else ", ".join(sorted(shards))
        raise RecordError(f"these are shards of different plans (other tests, engines or counts): {where}")
    if len(cuts) > 1:
        where = ", ".join(cuts.values())
        raise RecordError(f"these shards were cut in different ways (another file of --t2n-durations): {where}")
    count = int(counts.pop())
    missing = [f"{index}/{count}" for index in range(1, count + 1) if f"{index}/{count}" not in shards]
    if missing:
        raise RecordError(f"shards are missing: {', '.join(missing)}")
    return first.nodeids


def _merge_plans(files: Sequence[Sequence[PlanLine]]) -> list[PlanLine]:
    """Return the plan of all cells of each platform, which is of no shard; nothing if a file has no plan."""
    if not all(files):
        return []
    platforms: dict[str, list[PlanLine]] = {}
    for plan in chain.from_iterable(files):
        platforms.setdefault(plan.platform, []).append(plan)
    return [_joined(plans) for plans in platforms.values()]


def _joined(plans: Sequence[PlanLine]) -> PlanLine:
    """Return the plan of the cells of all these plans, which are of one platform."""
    cells: dict[str, dict[str, None]] = {}
    for plan in plans:
        for engine, nodeids in plan.cells.items():
            cells.setdefault(engine, {}).update(dict.fromkeys(nodeids))
    digests = {plan.sha256 for plan in plans}
    return PlanLine(
        SCHEMA,
        sha256=digests.pop() if len(digests) == 1 else "",
        cells={engine: list(nodeids) for engine, nodeids in cells.items()},
        platform=plans[0].platform,
    )


def _merge_ends(last: Sequence[Record | None]) -> list[EndLine]:
    """Return the end of the session that ended last; nothing if a file has no end."""
    known = [line for line in last if isinstance(line, EndLine)]
    if len(known) < len(last):
        return []
    stopped = dict.fromkeys(line.stopped for line in known if line.stopped)
    return [EndLine(SCHEMA, max(line.ended for line in known), "; ".join(stopped))]


def _merge_runs(runs: Sequence[RunLine]) -> RunLine:
    engines: dict[tuple[str, str], EngineLine] = {}
    for run in runs:
        for engine in run.engines:
            known = engines.setdefault((engine.title, engine.platform), engine)
            if known.sha256 != engine.sha256:
                raise RecordError(f"{engine.title} is another binary in each of these files")
    titles = list(dict.fromkeys(title for title, _ in engines))
    if len({run.level for run in runs}) > 1:
        raise RecordError("these runs had different levels (--t2n-level)")
    first = min(runs, key=lambda run: run.started)
    changed: dict[str, Any] = {
        "engines": sorted(engines.values(), key=lambda engine: titles.index(engine.title)),
        # what differs is in the platforms
        "versions": {n: v for n, v in first.versions.items() if all(run.versions.get(n) == v for run in runs)},
        "platform": "; ".join(dict.fromkeys(run.platform for run in runs)),
        "platforms": list({line.key: line for run in runs for line in run.platforms}.values()),
        "arguments": [one for one in first.arguments if not one.startswith(_SHARD_OPTIONS)],
    }
    return msgspec.structs.replace(first, **changed)


def _refuse(problem: str, names: Sequence[str]) -> None:
    if names:
        shown = "".join(f"\n  {name}" for name in names[:_NAMED])
        more = f"\n  … and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise RecordError(f"{len(names)} {problem}:{shown}{more}")


__all__ = ["merge_records"]
