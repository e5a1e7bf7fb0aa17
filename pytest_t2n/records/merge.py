"""Merge the records of several sessions: they must be complete, disjoint and of one plan, or an error is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from pytest_t2n.records.completeness import Completeness
from pytest_t2n.records.file import encode
from pytest_t2n.records.indexed.file import IndexedFile
from pytest_t2n.records.indexed.plans import RawPlan
from pytest_t2n.records.indexed.table import CellTable
from pytest_t2n.records.platform import names_of
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, EngineLine, PlanLine, RecordError, RunLine
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

    Shards must be all shards of one plan, each once. Other files, such as of other engines, must be disjoint; with
    `allow_rerun` the last file wins if a cell is in several. The same cell on another platform is another cell: if
    files come from several platforms, each has its plan, and the platform is a part of the column's title. With
    `allow_incomplete` files may be incomplete: the result has no plan, or no end, if one of them has none. All are of
    one state of the project's Python files, unless `allow_sources`, which no shard may have.

    `torn` is called for incomplete last lines, `tell` with the state of each file. Memory does not grow with the cells.
    Returns the number of cells.

    Raises:
        RecordError: a file is incomplete, a cell is missing or in two files, or the files have different plans.
        OSError: a file cannot be read, or the output cannot be written.
    """
    with ExitStack() as closing:
        files = {str(path): closing.enter_context(IndexedFile(path, torn)) for path in dict.fromkeys(paths)}
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
        table = CellTable()
        closing.callback(table.close)
        return _Merge(files, table, allow_rerun, allow_incomplete).write(output)


class _Merge:
    def __init__(
        self, files: Mapping[str, IndexedFile], table: CellTable, allow_rerun: bool, allow_incomplete: bool
    ) -> None:
        """Collect the places of all cells. Raises RecordError."""
        self._names, self._files, self._table = list(files), list(files.values()), table
        plans = {name: file.plans for name, file in files.items()}
        self._sharded = any(plan.shard for lines in plans.values() for plan in lines)
        if self._sharded:
            first = _check_shards(plans)
            table.plan(((nodeid, "") for nodeid in files[first].order()), "")
        self._used: set[str] = set()
        """Platforms of cells, and of plans with cells."""
        self._collect(allow_rerun)
        if self._sharded and not allow_incomplete:
            _refuse("planned, but in no file", (nodeid for _, nodeid, _, _ in table.missing()))
        if self._sharded:
            _refuse("in a file, but not planned", table.unplanned())
        self._planned = self._plan_heads()

    def write(self, output: Path) -> int:
        """Write the merged file, and return the number of its cells. Raises RecordError, OSError."""
        runs = [run for file in self._files for run in file.runs]
        run = _merge_runs(runs) if runs else None
        lines = [one for one in (run.platforms if run is not None else []) if one.key in self._used]
        names = names_of(lines)
        if len(names) < 2:
            names = {}
        count = 0
        with replacing(output) as sink:
            if run is not None:
                engines = [msgspec.structs.replace(one, on=names.get(one.platform, "")) for one in run.engines]
                sink.write(f"{encode(msgspec.structs.replace(run, engines=engines))}\n".encode())
            for plan in self._planned:
                for piece in self._plan_text(plan):
                    sink.write(piece.encode())
            for _, _, place in self._table.cells(planned=self._sharded):
                file = self._files[place.file]
                cell = file.read(place)
                assert isinstance(cell, CellLine)
                graph = self._table.take_graph(cell.graph) if cell.graph else None
                if graph is not None:
                    sink.write(f"{encode(self._files[graph.file].read(graph))}\n".encode())
                cell = msgspec.structs.replace(cell, on=names.get(cell.platform, ""))
                sink.write(f"{encode(cell)}\n".encode())
                count += 1
            for end in _merge_ends([file.end for file in self._files]):
                sink.write(f"{encode(end)}\n".encode())
        return count

    def _collect(self, allow_rerun: bool) -> None:
        """Add the place of each cell and graph. Raises RecordError if a cell is in several files."""
        table, twice = self._table, _FirstNames()
        for number, file in enumerate(self._files):
            for key, place in file.graph_places():
                table.add_graph(key, place._replace(file=number))
            for nodeid, platform, place in file.places():
                self._used.add(platform)
                key = "" if self._sharded else platform  # shards have each cell once, wherever they ran
                known = None if allow_rerun else table.file_of(nodeid, key)
                if known is not None and known != number:
                    twice.add(f"{nodeid} ({self._names[known]} and {self._names[number]})")
                table.add_cell(nodeid, key, "", "", place._replace(file=number))
        twice.refuse("in more than one file")

    def _plan_heads(self) -> list[PlanLine]:
        """Return the merged plan of each platform, without its cells; an empty list if a file has no plan."""
        digests: dict[str, set[str]] = {}
        for file in self._files:
            last = {plan.platform: plan for plan in file.plans}
            if not last:
                return []
            for platform, plan in last.items():
                digests.setdefault(platform, set()).add(plan.sha256)
            self._table.join_plan(file.planned())
        heads = []
        for platform, found in digests.items():
            heads.append(PlanLine(SCHEMA, sha256=found.pop() if len(found) == 1 else "", platform=platform))
            if next(self._table.joined_plan(platform), None) is not None:
                self._used.add(platform)
        return heads

    def _plan_text(self, plan: PlanLine) -> Iterator[str]:
        """Yield the line of a plan with its cells in pieces."""
        fields = msgspec.json.decode(encode(plan))
        platform = fields.pop("platform", "")
        yield msgspec.json.encode(fields).decode()[:-1]
        before = ',"cells":{'
        for engine, nodeids in self._table.joined_plan(platform):
            yield before + msgspec.json.encode(engine).decode() + ":["
            for place, nodeid in enumerate(nodeids):
                yield ("," if place else "") + msgspec.json.encode(nodeid).decode()
            before = "],"
        end = "" if before.startswith(",") else "]}"
        yield end + (f',"platform":{msgspec.json.encode(platform).decode()}' if platform else "") + "}\n"


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
    found = _FirstNames()
    for name in names:
        found.add(name)
    found.refuse(problem)


def _check_shards(plans: Mapping[str, Sequence[RawPlan]]) -> str:
    """Check that files are all shards of one plan; return the name of the one with the order of all cells."""
    whole = [name for name, lines in plans.items() if not lines or not lines[-1].shard]
    _refuse("beside files of shards, but not a shard", whole)
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


def _check_sources(files: Mapping[str, IndexedFile], allowed: bool) -> None:
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
    known = [line for line in last if line is not None]
    if not known or len(known) < len(last):
        return []
    stopped = dict.fromkeys(line.stopped for line in known if line.stopped)
    return [EndLine(SCHEMA, max(line.ended for line in known), "; ".join(stopped))]


def _merge_runs(runs: Sequence[RunLine]) -> RunLine:
    engines: dict[tuple[str, str], EngineLine] = {}
    for engine in (msgspec.structs.replace(one, on="") for run in runs for one in run.engines):
        known = engines.setdefault((engine.title, engine.platform), engine)
        if known.sha256 != engine.sha256:
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
        "arguments": [one for one in first.arguments if not one.startswith(_SHARD_OPTIONS)],
    }
    return msgspec.structs.replace(first, **changed)
