"""Merge the records of several sessions: they must be complete, disjoint and of one plan, or an error is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from pytest_t2n.records.completeness import Completeness, last_plans
from pytest_t2n.records.file import encode
from pytest_t2n.records.index import RecordIndex, open_index
from pytest_t2n.records.platform import names_of
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, EngineLine, PlanLine, Record, RecordError, RunLine
from t2n_core.files import replacing

_NAMED = 10
_SHARD_OPTIONS = ("--t2n-shard=", "--t2n-durations=")


def merge_files(
    paths: Iterable[Path],
    output: Path,
    *,
    allow_rerun: bool = False,
    allow_incomplete: bool = False,
    allow_sources: bool = False,
    torn: Callable[[str], object] | None = None,
    tell: Callable[[Path, Completeness], object] = lambda path, state: None,
) -> int:
    """Write one run line, the plan, the cells in its order, each graph before the first cell that has it, the end.

    Shards must be all shards of one plan, each once. Other files, such as other engines', must be disjoint; with
    `allow_rerun` the last file wins if a cell is in several. The same cell on another platform is another cell: if
    files come from several platforms, each has its plan, and the platform is part of the column's title. With
    `allow_incomplete` files may be incomplete: the result lacks a plan or an end if one of them lacks it. All must be
    from one state of the project's Python files, unless `allow_sources`, which no shard may have.

    `torn` is called for incomplete last lines, `tell` with the state of each file. Returns the number of cells.

    Raises:
        RecordError: a file is incomplete, a cell is missing or in two files, or the files have different plans.
        OSError: a file cannot be read, or the output cannot be written.
    """
    with ExitStack() as closing:
        files = {str(path): closing.enter_context(open_index(path, torn)) for path in dict.fromkeys(paths)}
        for name, file in files.items():
            tell(Path(name), file.completeness)
        if not allow_incomplete:
            unfinished = [
                f"{name}: {file.completeness.notice}"
                for name, file in files.items()
                if not file.completeness.is_complete
            ]
            _refuse("incomplete (--allow-incomplete merges them)", unfinished)
        _check_sources(files, allow_sources)
        return _Merge(files, allow_rerun, allow_incomplete).write(output)


class _Merge:
    def __init__(self, files: Mapping[str, RecordIndex], allow_rerun: bool, allow_incomplete: bool) -> None:
        """Collect the places of all cells. Raises RecordError."""
        self._names, self._files = list(files), list(files.values())
        plans = {name: file.plans for name, file in files.items()}
        self._sharded = any(plan.shard for lines in plans.values() for plan in lines)
        order = files[_check_shards(plans)].plans[-1].nodeids if self._sharded else []
        self._graphs = {key: (file, position) for file in self._files for key, position in file.graph_places.items()}
        self._used: set[str] = set()
        """Platforms of cells, and of plans with cells."""
        self._cells = self._collect(allow_rerun)
        if self._sharded:
            if not allow_incomplete:
                _refuse("planned, but in no file", (nodeid for nodeid in order if (nodeid, "") not in self._cells))
            planned = set(order)
            _refuse("in a file, but not planned", (nodeid for nodeid, _ in self._cells if nodeid not in planned))
            self._cells = {(nodeid, ""): self._cells[nodeid, ""] for nodeid in order if (nodeid, "") in self._cells}
        self._plans = self._merge_plans()

    def write(self, output: Path) -> int:
        """Write the merged file, and return the number of its cells. Raises RecordError, OSError."""
        runs = [run for file in self._files for run in file.runs]
        run = _merge_runs(runs) if runs else None
        lines = [platform for platform in (run.platforms if run is not None else []) if platform.key in self._used]
        names = names_of(lines)
        if len(names) < 2:
            names = {}
        with replacing(output) as sink:

            def add(record: Record) -> None:
                sink.write(f"{encode(record)}\n".encode())

            if run is not None:
                engines = [msgspec.structs.replace(engine, on=names.get(engine.platform, "")) for engine in run.engines]
                add(msgspec.structs.replace(run, engines=engines))
            for plan in self._plans:
                add(plan)
            for number, position in self._cells.values():
                cell = self._files[number].read(position)
                assert isinstance(cell, CellLine)
                if cell.graph in self._graphs:
                    file, position = self._graphs.pop(cell.graph)
                    add(file.read(position))
                add(msgspec.structs.replace(cell, on=names.get(cell.platform, "")))
            for end in _merge_ends([file.end for file in self._files]):
                add(end)
        return len(self._cells)

    def _collect(self, allow_rerun: bool) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the file and the place of each cell. Raises RecordError if a cell is in several files."""
        cells: dict[tuple[str, str], tuple[int, int]] = {}
        twice = _FirstNames()
        for number, file in enumerate(self._files):
            for nodeid, platform, position in file.places():
                self._used.add(platform)
                key = nodeid, "" if self._sharded else platform  # shards have each cell once, wherever they ran
                earlier = None if allow_rerun else cells.get(key)
                if earlier is not None and earlier[0] != number:
                    twice.add(f"{nodeid} ({self._names[earlier[0]]} and {self._names[number]})")
                cells[key] = number, position
        twice.refuse("in more than one file")
        return cells

    def _merge_plans(self) -> list[PlanLine]:
        """Return the merged plan of each platform; an empty list if a file has no plan."""
        digests: dict[str, set[str]] = {}
        planned: dict[str, dict[str, dict[str, None]]] = {}
        for file in self._files:
            plans = last_plans(file.plans)
            if not plans:
                return []
            for plan in plans:
                digests.setdefault(plan.platform, set()).add(plan.sha256)
                engines = planned.setdefault(plan.platform, {})
                for engine, nodeids in plan.cells.items():
                    engines.setdefault(engine, {}).update(dict.fromkeys(nodeids))
        self._used |= {platform for platform, engines in planned.items() if any(engines.values())}
        return [
            PlanLine(
                SCHEMA,
                sha256=plan_digests.pop() if len(plan_digests) == 1 else "",
                cells={engine: list(nodeids) for engine, nodeids in planned[platform].items() if nodeids},
                platform=platform,
            )
            for platform, plan_digests in digests.items()
        ]


class _FirstNames:
    """Counts names and lists the first few."""

    def __init__(self) -> None:
        self._count, self._first = 0, list[str]()

    def add(self, name: str) -> None:
        self._count += 1
        if self._count <= _NAMED:
            self._first.append(name)

    def refuse(self, problem: str) -> None:
        """Raise RecordError if there are any names."""
        if self._count:
            shown = "".join(f"\n  {name}" for name in self._first)
            more = f"\n  … and {self._count - _NAMED} more" if self._count > _NAMED else ""
            raise RecordError(f"{self._count} {problem}:{shown}{more}")


def _refuse(problem: str, names: Iterable[str]) -> None:
    first_names = _FirstNames()
    for name in names:
        first_names.add(name)
    first_names.refuse(problem)


def _check_shards(plans: Mapping[str, Sequence[PlanLine]]) -> str:
    """Check that files are all shards of one plan; return the name of the one with the order of all cells."""
    unsharded_files = [name for name, lines in plans.items() if not lines or not lines[-1].shard]
    _refuse("beside files of shards, but not a shard", unsharded_files)
    digests: dict[str, str] = {}
    cuts: dict[str, str] = {}
    shards: dict[str, str] = {}
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
    return next(iter(plans))


def _check_sources(files: Mapping[str, RecordIndex], allowed: bool) -> None:
    """Raise RecordError if the files are of several states of the project, which no shards of one plan are."""
    first: dict[str, str] = {}
    for name, file in files.items():
        for run in file.runs:
            first.setdefault(run.source, name)
    if len(first) > 1 and (not allowed or any(plan.shard for file in files.values() for plan in file.plans)):
        where = ", ".join(first.values())
        raise RecordError(f"these runs are of different states of the project's Python files: {where}")


def _merge_ends(last: Sequence[EndLine | None]) -> list[EndLine]:
    """Return the end of the session that ended last; an empty list if a file has no end."""
    ends = [line for line in last if line is not None]
    if not ends or len(ends) < len(last):
        return []
    stopped = dict.fromkeys(line.stopped for line in ends if line.stopped)
    return [EndLine(SCHEMA, max(line.ended for line in ends), "; ".join(stopped))]


def _merge_runs(runs: Sequence[RunLine]) -> RunLine:
    engines: dict[tuple[str, str], EngineLine] = {}
    for engine in (msgspec.structs.replace(line, on="") for run in runs for line in run.engines):
        earlier_engine = engines.setdefault((engine.title, engine.platform), engine)
        if earlier_engine.sha256 != engine.sha256:
            raise RecordError(f"{engine.title} is another binary in each of these files")
    titles = list(dict.fromkeys(title for title, _ in engines))
    if len({run.level for run in runs}) > 1:
        raise RecordError("these runs had different levels (--t2n-level)")
    if len({tuple(run.transforms) for run in runs}) > 1:
        raise RecordError("these runs had different transforms (--t2n-transforms)")
    first = min(runs, key=lambda run: run.started)
    changed: dict[str, Any] = {
        "engines": sorted(engines.values(), key=lambda engine: titles.index(engine.title)),
        # what differs is in the platforms
        "versions": {n: v for n, v in first.versions.items() if all(run.versions.get(n) == v for run in runs)},
        "platform": "; ".join(dict.fromkeys(run.platform for run in runs)),
        "platforms": list({line.key: line for run in runs for line in run.platforms}.values()),
        "arguments": [argument for argument in first.arguments if not argument.startswith(_SHARD_OPTIONS)],
    }
    return msgspec.structs.replace(first, **changed)
