"""What part of a suite a session runs: whether it is all of it, this machine's shard, and what was done before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.collect.cells import Cell, decode_plan, encode_plan
from pytest_t2n.collect.names import CELL, DESELECTED, SELECTION
from pytest_t2n.config.engines import SelectedEngine
from pytest_t2n.config.shard import Shard
from pytest_t2n.expect.entries import suite_names


@dataclass(slots=True)
class Selection:
    """What collection found, before and after this session's part was taken."""

    cells: list[Cell] = field(default_factory=list)
    """Those that run now."""
    planned: list[Cell] = field(default_factory=list)
    """Those of all shards, in the order of collection."""
    suites: set[str] = field(default_factory=set)
    """Names of all collected tests without parameters."""
    partial: bool = False
    """Tests were left out on the user's wish."""

    def to_dict(self) -> dict[str, Any]:
        """In built-in types."""
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
        """`nodeids` are those of the collected tests, whose texts the cells shall share."""
        cells = decode_plan(fields["cells"], engines, nodeids)
        planned = decode_plan(fields["planned"], engines) or list(cells)
        return cls(cells, planned, set(fields["suites"]), fields["partial"])


def take_part(
    config: pytest.Config, items: list[pytest.Item], shard: Shard | None, done: Iterable[str] = ()
) -> Selection:
    """Leave in `items` what this session shall run: its shard, without the cells that were done before."""
    planned = _cells(items)
    suites = {name for item in items for name in suite_names(item.nodeid)}
    finished = set(done)
    partial = config.stash.get(DESELECTED, False) or bool(finished) or _left_out(config)
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        cell = item.stash.get(CELL, None)
        mine = shard is None or shard.has(cell.case if cell else item.nodeid)
        (chosen if mine and item.nodeid not in finished else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen
    selection = Selection(_cells(items), planned, suites, partial or shard is not None)
    config.stash[SELECTION] = selection
    return selection


def plan_digest(cells: Iterable[Cell]) -> str:
    """Equal for sessions that would together run the same cells on the same engines."""
    digest = hashlib.sha256()
    for line in sorted(_identity(cell) for cell in cells):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def ran_everything(config: pytest.Config) -> bool:
    """The user named no part of the project: the root, or all of `testpaths`, was collected."""
    roots = {_path_of(argument, config) for argument in config.args}
    if config.rootpath in roots:
        return True
    paths = [config.rootpath / path for path in config.getini("testpaths")]
    return bool(paths) and all(path in roots for path in paths)


def _left_out(config: pytest.Config) -> bool:
    """Tests are missing without having been deselected: by files of the last failure, or by the arguments."""
    options = (config.getoption(name, None) for name in ("lf", "ignore", "ignore_glob", "shard"))
    return any(options) or any("::" in argument for argument in config.args)


def _path_of(argument: str, config: pytest.Config) -> Path:
    return (config.invocation_params.dir / argument.partition("::")[0]).resolve()


def _cells(items: Iterable[pytest.Item]) -> list[Cell]:
    return [cell for item in items if (cell := item.stash.get(CELL, None)) is not None]


def _identity(cell: Cell) -> str:
    sha256 = (cell.engine.resolved or {}).get("sha256", "")
    return f"{cell.nodeid}\t{cell.case}\t{cell.engine.id}\t{sha256}"


__all__ = ["Selection", "plan_digest", "ran_everything", "take_part"]
