"""What is written of a session: one run line, then one line per cell, graphs between. The schema of `matrix.jsonl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

SCHEMA = 1
"""Raised when a field changes its meaning or goes; a new field with a default does not raise it."""

_MESSAGE = 4_000
"""Characters of an error's message in an outline."""
Number = float | int | str
"""NaN and infinities are the words `nan`, `inf`, `-inf`."""
StatusName = Literal["pass", "mismatch", "unsupported", "error", "crash", "timeout", "oom", "skip", "not_run"]
StageName = Literal["setup", "capture", "lower", "spec", "write", "load", "optimise", "run", "compare"]
LevelName = Literal["exact", "close", "approximate", "very", "super", "ultra"]


class RecordError(Exception):
    """A file of records that cannot be read; the message names the file and the line."""


class EngineLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One engine of a run."""

    target: str
    version: str
    label: str
    requested: str = ""
    kind: str = ""
    sha256: str = ""

    @property
    def title(self) -> str:
        return f"{self.target} {self.label}"


class OutputLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst comparison of one output; see `t2n_core.check.comparison.OutputComparison`."""

    name: str
    dtype: str
    shape: list[int]
    status: Literal["pass", "mismatch"]
    required: LevelName
    level: LevelName | None = None
    problem: str = ""
    required_atol: Number = 0.0
    required_rtol: Number = 0.0
    max_abs: Number = 0.0
    max_rel: Number = 0.0
    max_ulp: int | None = None
    worst_index: list[int] | None = None
    worst_expected: bool | Number | None = None
    worst_actual: bool | Number | None = None
    outliers: dict[str, Number] = {}
    nan_mismatches: int = 0
    inf_mismatches: int = 0


class ErrorLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a cell failed; see `t2n_core.check.outcome.ErrorInfo`."""

    error_class: str
    message: str
    hint: str = ""
    op: str = ""
    module_path: str = ""
    source: str = ""
    fingerprint: str = ""
    details: str = ""


class BenchmarkLine(msgspec.Struct, frozen=True):
    """Seconds per round, for `--t2n-benchmark`."""

    export: list[float]
    """Capture, lower and write; capture is shared by all engines of a case."""
    load: list[float]
    """Load and optimise."""
    run: list[float]
    """Of `runs` runs on the first inputs."""
    runs: int


class CellLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="cell"):
    """The one outcome of a cell."""

    schema: int
    nodeid: str
    case: str
    """The node id without the engine: the row of the matrix."""
    target: str
    version: str
    label: str
    """Target and label are the column of the matrix."""
    status: StatusName
    stage: StageName
    level: LevelName | None = None
    required: LevelName | None = None
    expected: str = ""
    """Why a failure is no surprise (`xfail: …`); empty where a pass is expected."""
    outputs: list[OutputLine] = []
    sizes: list[dict[str, int]] = []
    failed_sizes: list[dict[str, int]] = []
    range: str = ""
    """The sizes that the archive holds for: `1 <= T <= 16, T % 2 == 0`."""
    refused_sizes: list[dict[str, int]] = []
    """Sizes just outside of the range, which the engine refused as it has to."""
    error: ErrorLine | None = None
    times: dict[str, float] = {}
    """Seconds by stage."""
    archive_sha256: str = ""
    archive_bytes: int = 0
    facts: dict[str, Any] = {}
    reused: bool = False
    """Of an earlier session with the same archive, numbers, engine and comparison (`--t2n-reuse`)."""
    op: str = ""
    """The operator that the case is about, where the test names one (property `t2n_op`)."""
    ops: list[str] = []
    """Torch operators of the captured model, in the order in which they come first."""
    dtype: str = ""
    """What the case computes in: of its first input of floating point, else of its first input."""
    graph: str = ""
    """Key of the graph line with what the engine was given."""
    benchmark: BenchmarkLine | None = None

    @property
    def engine(self) -> str:
        """Title of the column."""
        return f"{self.target} {self.label}"


class RunLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="run"):
    """What the cells behind it have in common."""

    schema: int
    started: str
    """UTC, ISO 8601."""
    engines: list[EngineLine] = []
    versions: dict[str, str] = {}
    """Of Python and of the distributions that matter."""
    platform: str = ""
    level: LevelName = "approximate"
    """Tolerance of cases that name none."""
    arguments: list[str] = []


class PlanLine(msgspec.Struct, frozen=True, tag_field="type", tag="plan"):
    """What all shards of a run have in common, and which of them this is."""

    schema: int
    shard: str
    """`2/4`."""
    sha256: str
    """Of the planned cells of all shards, with their engines."""
    nodeids: list[str]
    """Of the planned cells of all shards, in the order of collection."""


class GraphLine(msgspec.Struct, frozen=True, tag_field="type", tag="graph"):
    """The graph text of an archive, written once for all cells that share it and in front of the first."""

    schema: int
    key: str
    """Start of the SHA-256 of the text."""
    text: str


Record = RunLine | CellLine | PlanLine | GraphLine
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def encode(record: Record) -> str:
    """One line of JSON, without its end."""
    return _encoder.encode(record).decode()


def decode_line(line: str | bytes) -> Record:
    """Raises msgspec.DecodeError for what is no record."""
    return _decoder.decode(line)


def read_records(path: Path) -> list[Record]:
    """All records of a file, as `each_record` gives them. Raises RecordError, OSError."""
    return list(each_record(path))


def each_record(path: Path) -> Iterator[Record]:
    """One record of a file at a time; a last line that was cut off by a killed session is left out.

    Raises:
        RecordError: a line that is no record, or of a newer schema.
        OSError: the file cannot be read.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n") or not line.strip():
                continue
            try:
                record = _decoder.decode(line)
            except msgspec.DecodeError as exc:
                raise RecordError(f"{path}:{number}: {exc}") from exc
            if record.schema > SCHEMA:
                raise RecordError(f"{path}:{number}: schema {record.schema}, and this version reads up to {SCHEMA}")
            yield record


def outline_of(cell: CellLine, words: dict[str, str] | None = None) -> CellLine:
    """The cell without its evidence: a tenth of the memory, and all that counts, groups and orders cells.

    `words` are texts that cells share, as one object each.
    """
    same = (words if words is not None else {}).setdefault
    error = cell.error
    if error is not None:
        error = msgspec.structs.replace(error, message=same(message := error.message[:_MESSAGE], message), details="")
    run = cell.times.get("run")
    return msgspec.structs.replace(
        cell,
        case=same(cell.case, cell.case),
        target=same(cell.target, cell.target),
        version=same(cell.version, cell.version),
        label=same(cell.label, cell.label),
        expected=same(cell.expected, cell.expected),
        outputs=[_output_of(cell.outputs[0].dtype)] if cell.outputs else [],
        sizes=[],
        failed_sizes=[],
        range="",
        refused_sizes=[],
        error=error,
        times={} if run is None else {"run": run},
        archive_sha256="",
        facts={},
        op=same(cell.op, cell.op),
        ops=[same(op, op) for op in cell.ops],
        dtype=same(cell.dtype, cell.dtype),
        graph=same(cell.graph, cell.graph),
    )


@lru_cache
def _output_of(dtype: str) -> OutputLine:
    """An output of which nothing but the type is told."""
    return OutputLine(dtype, dtype, [], "pass", "exact")


def cells_of(records: Iterable[Record]) -> list[CellLine]:
    """The cells, the last record of each node id."""
    found: dict[str, CellLine] = {}
    for record in records:
        if isinstance(record, CellLine):
            found[record.nodeid] = record
    return list(found.values())


def with_graphs(cells: Iterable[CellLine], graphs: Mapping[str, str]) -> list[Record]:
    """The cells, each graph in front of the first that has it."""
    found: list[Record] = []
    written = set()
    for cell in cells:
        if cell.graph in graphs and cell.graph not in written:
            written.add(cell.graph)
            found.append(GraphLine(SCHEMA, cell.graph, graphs[cell.graph]))
        found.append(cell)
    return found


def graphs_of(records: Iterable[Record]) -> dict[str, str]:
    """Texts of the graphs by their keys."""
    return {record.key: record.text for record in records if isinstance(record, GraphLine)}


__all__ = [
    "SCHEMA",
    "BenchmarkLine",
    "CellLine",
    "EngineLine",
    "ErrorLine",
    "GraphLine",
    "OutputLine",
    "PlanLine",
    "Record",
    "RecordError",
    "RunLine",
    "cells_of",
    "decode_line",
    "each_record",
    "encode",
    "graphs_of",
    "outline_of",
    "read_records",
    "with_graphs",
]
