"""The part of a suite that a session runs: all of it, a shard, or the rest of an interrupted session."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_t2n.collect.targets import TARGETS
from pytest_t2n.config.shard import Shard, cut_cases, partition
from pytest_t2n.records.cell import Cell, SelectedEngine, decode_plan, encode_plan
from pytest_t2n.records.completeness import plan_for
from pytest_t2n.records.schema import PlanLine
from t2n_core.text import storable


@dataclass(slots=True)
class Selection:
    """The collected cells, before and after the selection of this session's part."""

    cells: list[Cell] = field(default_factory=list)
    """Cells that run now."""
    planned: list[Cell] = field(default_factory=list)
    """Cells of all shards, in the order of collection."""
    suites: set[str] = field(default_factory=set)
    """Names of all collected tests without parameters."""
    partial: bool = False
    """True if the user left tests out."""
    cut: str = ""
    """Digest of the shard of each case; empty in a session without shards."""
    elsewhere: int = 0
    """Number of tests, if all of them are in other shards; otherwise 0."""
    unmade: list[str] = field(default_factory=list)
    """Cells of this session's part that markers require, but that no engine of the session fits."""

    def to_dict(self) -> dict[str, Any]:
        """Return the selection in built-in types."""
        return {
            "cells": encode_plan(self.cells),
            "planned": [] if self.planned == self.cells else encode_plan(self.planned),
            "suites": sorted(self.suites),
            "partial": self.partial,
            "cut": self.cut,
            "elsewhere": self.elsewhere,
            "unmade": self.unmade,
            "own": [engine.to_dict() for engine in self.own_engines()],
        }

    def own_engines(self) -> list[SelectedEngine]:
        """Return the engines of the user's own targets and exporters, which the session learns from its cells."""
        engines = {cell.engine.id: cell.engine for cell in (*self.planned, *self.cells)}
        return [engine for engine in engines.values() if engine.target not in TARGETS or engine.exporter]

    @classmethod
    def from_dict(
        cls, fields: Mapping[str, Any], engines: Sequence[SelectedEngine], nodeids: Iterable[str] = ()
    ) -> Selection:
        """Return the selection of `to_dict`; its cells share the texts of `nodeids`, the collected tests."""
        engines = [*engines, *map(SelectedEngine.from_dict, fields["own"])]
        cells = decode_plan(fields["cells"], engines, nodeids)
        planned = decode_plan(fields["planned"], engines) or list(cells)
        rest = (fields[name] for name in ("partial", "cut", "elsewhere", "unmade"))
        return cls(cells, planned, set(fields["suites"]), *rest)


def in_shard(
    items: Sequence[pytest.Item], cells: Mapping[pytest.Item, Cell], shard: Shard, durations: Mapping[str, float]
) -> tuple[set[pytest.Item], str]:
    """Return the items of a shard, and a digest that is equal for shards of one partition.

    All cells of a case are in one shard. `durations` are seconds by case. Tests without an engine are divided evenly.
    """
    cut = cut_cases(Counter(cell.case for cell in cells.values()), durations, shard.count)
    others = {storable(item.nodeid): 1.0 for item in items if item not in cells}
    shards = {**cut.shards, **partition(others, shard.count, cut.loads)}
    shard_items = {
        item for item in items if shards[cells[item].case if item in cells else storable(item.nodeid)] == shard.index
    }
    return shard_items, cut.digest


def unmade_cells(cells: Iterable[tuple[Cell, Sequence[str]]]) -> list[str]:
    """Return `CASE on TARGET` for each target of a case's marker without a cell.

    Each cell comes with the targets of its marker.
    """
    required: dict[str, dict[str, None]] = {}
    made: dict[str, set[str]] = {}
    for cell, targets in cells:
        required.setdefault(cell.case, {}).update(dict.fromkeys(targets))
        made.setdefault(cell.case, set()).add(cell.engine.target)
    return [
        f"{case} on {target}" for case, targets in required.items() for target in targets if target not in made[case]
    ]


def plan_line(selection: Selection, shard: Shard | None, existing: Container[str]) -> PlanLine:
    """Return the plan of a session whose file will have the planned cells with the node ids in `existing`."""
    file_plan = plan_for(cell for cell in selection.planned if cell.nodeid in existing)
    plan = msgspec.structs.replace(file_plan, sha256=plan_digest(selection.planned))
    if shard is None:
        return plan
    nodeids = [cell.nodeid for cell in selection.planned]
    return msgspec.structs.replace(plan, shard=str(shard), nodeids=nodeids, cut=selection.cut)


def plan_digest(cells: Iterable[Cell]) -> str:
    """Return a digest that is equal for sessions with the same planned cells on the same engines."""
    digest = hashlib.sha256()
    for line in sorted(_identity(cell) for cell in cells):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def ran_everything(config: pytest.Config) -> bool:
    """Return whether the root, or all of `testpaths`, was collected: the user selected no part of the project."""
    roots = {_path_of(argument, config) for argument in config.args}
    if config.rootpath in roots:
        return True
    paths = [config.rootpath / path for path in config.getini("testpaths")]
    return bool(paths) and all(path in roots for path in paths)


def is_narrowed(config: pytest.Config) -> bool:
    """Return whether options or arguments exclude tests without deselecting them."""
    options = (config.getoption(name, None) for name in ("lf", "ignore", "ignore_glob", "shard"))
    return any(options) or any("::" in argument for argument in config.args)


def _path_of(argument: str, config: pytest.Config) -> Path:
    return (config.invocation_params.dir / argument.partition("::")[0]).resolve()


def _identity(cell: Cell) -> str:
    sha256 = (cell.engine.resolved or {}).get("sha256", "")
    return f"{cell.nodeid}\t{cell.case}\t{cell.engine.id}\t{sha256}"
