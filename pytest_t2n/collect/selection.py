"""The part of a suite that a session runs: all of it, a shard, or the rest of an interrupted session."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.config.shard import Shard
from pytest_t2n.records.cell import Cell, SelectedEngine, decode_plan, encode_plan, nodeids_by_engine
from pytest_t2n.records.schema import SCHEMA, PlanLine
from t2n_core.text import storable


@dataclass(slots=True)
class Selection:
    """The cells that collection found, before and after this session's part was taken."""

    cells: list[Cell] = field(default_factory=list)
    """Cells that run now."""
    planned: list[Cell] = field(default_factory=list)
    """Cells of all shards, in the order of collection."""
    suites: set[str] = field(default_factory=set)
    """Names of all collected tests without parameters."""
    partial: bool = False
    """True if the user left tests out."""

    def to_dict(self) -> dict[str, Any]:
        """Return the selection in built-in types."""
        return {
            "cells": encode_plan(self.cells),
            "planned": [] if self.planned == self.cells else encode_plan(self.planned),
            "suites": sorted(self.suites),
            "partial": self.partial,
        }

    @classmethod
    def from_dict(
        cls, fields: Mapping[str, Any], engines: Sequence[SelectedEngine], nodeids: Iterable[str] = ()
    ) -> Selection:
        """Return the selection of `to_dict`; its cells share the texts of `nodeids`, the collected tests."""
        cells = decode_plan(fields["cells"], engines, nodeids)
        planned = decode_plan(fields["planned"], engines) or list(cells)
        return cls(cells, planned, set(fields["suites"]), fields["partial"])


def divide(
    items: Iterable[pytest.Item], cells: Mapping[pytest.Item, Cell], shard: Shard | None, done: Iterable[str] = ()
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items that this session runs, and the others: of other shards, or done before."""
    finished = set(done)
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        cell = cells.get(item)
        mine = shard is None or shard.has(cell.case if cell else storable(item.nodeid))
        (chosen if mine and (cell is None or cell.nodeid not in finished) else others).append(item)
    return chosen, others


def plan_line(selection: Selection, shard: Shard | None, known: Container[str]) -> PlanLine:
    """Return the plan of a session whose file is to have the planned cells with the node ids in `known`."""
    own = nodeids_by_engine(cell for cell in selection.planned if cell.nodeid in known)
    digest = plan_digest(selection.planned)
    if shard is None:
        return PlanLine(SCHEMA, sha256=digest, cells=own)
    return PlanLine(SCHEMA, str(shard), digest, [cell.nodeid for cell in selection.planned], own)


def plan_digest(cells: Iterable[Cell]) -> str:
    """Return a digest that is equal for sessions which plan the same cells on the same engines."""
    digest = hashlib.sha256()
    for line in sorted(_identity(cell) for cell in cells):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def ran_everything(config: pytest.Config) -> bool:
    """Return True if the root, or all of `testpaths`, was collected: the user named no part of the project."""
    roots = {_path_of(argument, config) for argument in config.args}
    if config.rootpath in roots:
        return True
    paths = [config.rootpath / path for path in config.getini("testpaths")]
    return bool(paths) and all(path in roots for path in paths)


def is_narrowed(config: pytest.Config) -> bool:
    """Return True if tests are missing without being deselected, by options or by arguments."""
    options = (config.getoption(name, None) for name in ("lf", "ignore", "ignore_glob", "shard"))
    return any(options) or any("::" in argument for argument in config.args)


def _path_of(argument: str, config: pytest.Config) -> Path:
    return (config.invocation_params.dir / argument.partition("::")[0]).resolve()


def _identity(cell: Cell) -> str:
    sha256 = (cell.engine.resolved or {}).get("sha256", "")
    return f"{cell.nodeid}\t{cell.case}\t{cell.engine.id}\t{sha256}"


__all__ = ["Selection", "divide", "is_narrowed", "plan_digest", "plan_line", "ran_everything"]
