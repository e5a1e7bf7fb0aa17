"""Cells and their engines as plain values, which are sent to workers and written to records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pytest_t2n.records.nodeids import case_id, engine_id, qualified_target
from t2n_core.text import storable


@dataclass(frozen=True, slots=True)
class SelectedEngine:
    """An engine of the session, one column of the matrix."""

    target: str
    """`tract`, `khronos`, or the name of a target of the user."""
    version: str
    label: str
    """Unique within the target: `0.23.8`, `0.23.8 no-fma` of a tier, `path-0.23.5` of a binary."""
    resolved: Mapping[str, str] | None = None
    """The files of the engine, as `ResolvedEngine.to_dict` returns them; None for an engine that is not tract."""
    platform: str = ""
    """Key of the platform that it runs on."""
    exporter: str = ""
    """The exporter whose files it runs; empty for this package's own."""
    exporter_version: str = ""

    @property
    def id(self) -> str:
        """Return the end of test ids: `tract-0.21.19`, `tract-0.23.8-no-fma`, `torch-onnx-tract-0.21.19`, `khronos`."""
        return engine_id(self.target, self.label, self.exporter)

    @property
    def qualified_target(self) -> str:
        """Return the target, after the exporter if it is not this package's: `torch-onnx tract`."""
        return qualified_target(self.target, self.exporter)

    @property
    def kind(self) -> str:
        """Return `tract` for an engine of tract, also of a target of the user; otherwise the target."""
        return self.target if self.resolved is None else "tract"

    @property
    def title(self) -> str:
        """Return exporter, target and label, the title of the column."""
        return f"{self.qualified_target} {self.label}"

    @property
    def is_native(self) -> bool:
        """Return True for an engine with all its kernels, on the processor."""
        return " " not in self.label

    @property
    def requested(self) -> str:
        """Return the item of the version spec that selected it."""
        return self.resolved.get("requested", "") if self.resolved else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as built-in types, the only types xdist can send."""
        resolved = dict(self.resolved) if self.resolved else None
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "resolved": resolved}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SelectedEngine:
        """Return the engine of `to_dict`."""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Cell:
    """A case on one engine."""

    nodeid: str
    """The node id of the test; lone surrogates, which a file name can contain, are escaped."""
    case: str
    engine: SelectedEngine


def encode_plan(cells: Iterable[Cell]) -> list[list[str]]:
    """Return node id and engine of each cell, in built-in types."""
    return [[cell.nodeid, cell.engine.id] for cell in cells]


def decode_plan(
    plan: Iterable[Sequence[str]], engines: Sequence[SelectedEngine], nodeids: Iterable[str] = ()
) -> list[Cell]:
    """Return the cells of an encoded plan; node ids equal to some in `nodeids` share these objects."""
    by_id = {engine.id: engine for engine in engines}
    same = {nodeid: nodeid for nodeid in nodeids}
    return [Cell(same.get(nodeid, nodeid), case_id(nodeid, engine), by_id[engine]) for nodeid, engine in plan]


def guess_plan(nodeids: Iterable[str], engines: Sequence[SelectedEngine]) -> list[Cell]:
    """Return the cells among node ids, recognised by their suffix, for workers that could not send their plan."""
    cells = []
    by_length = sorted(engines, key=lambda engine: -len(engine.id))  # an id may end with another id
    for nodeid in map(storable, nodeids):
        for engine in by_length:
            case = case_id(nodeid, engine.id)
            if case != nodeid and nodeid.endswith(f"{engine.id}]"):
                cells.append(Cell(nodeid, case, engine))
                break
    return cells
