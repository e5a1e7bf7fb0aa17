"""The schema of `matrix.jsonl`: run, plan, one line per cell with the lines of graphs between them, and the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from pytest_t2n.records.nodeids import engine_id
from t2n_core.check.stage import Stage, Status
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance

SCHEMA = 2
"""Raised when a field changes its meaning or goes; a new field with a default does not raise it."""
Schema = Annotated[int, msgspec.Meta(ge=1)]
Number = float | int | str
"""NaN and infinities are the words `nan`, `inf`, `-inf`."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Time = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$")]


class RecordError(Exception):
    """A file of records that cannot be read; the message names the file and the line."""


class PlatformLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine with its packages: what affects computed values besides the engine. Cells name it by its key."""

    key: str
    """Digest of all other fields."""
    system: str = ""
    machine: str = ""
    vendor: str = ""
    model: str = ""
    features: list[str] = []
    """Vector features of the processor, as the system names them."""
    cores: int = 0
    environment: dict[str, str] = {}
    """Variables that choose threads and kernels of PyTorch and numpy, where they are set."""
    versions: dict[str, str] = {}
    """Versions of Python and of the distributions that decide about results."""


class EngineLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One engine of a run, on one platform."""

    target: str
    version: str
    label: str
    requested: str = ""
    kind: str = ""
    sha256: str = ""
    tier: str = ""
    """The kernels that it may use: `native`, `no-fma`; empty for an engine without tiers."""
    runtime: str = ""
    """The runtime that it computes on: `cpu`, `cuda`, `metal`."""
    kernels: list[str] = []
    """Features of the processor whose kernels it can use, as the engine names them."""
    environment: dict[str, str] = {}
    """Variables of its process that choose kernels and threads."""
    platform: str = ""
    """Key of the platform."""
    on: str = ""
    """Name of the platform in the title, in a file with cells of several."""

    @property
    def title(self) -> str:
        """Return target, label and, in a file with several, the platform: the title of the column."""
        return column_title(self.target, self.label, self.on)

    @property
    def id(self) -> str:
        """Return the end of test ids: `tract-0.21.19`, `tract-0.23.9-no-fma`, `khronos`."""
        return engine_id(self.target, self.label)


class OutputLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst comparison of one output; see `t2n_core.check.comparison.OutputComparison`."""

    name: str
    dtype: str
    shape: list[int]
    status: Literal["pass", "mismatch"]
    required: TractCheckTolerance
    level: TractCheckTolerance | None = None
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
    moves: Number | None = None
    """The largest difference of an element between samples of equal shapes."""
    moving: float = 0.0
    """Share of the elements that move by more than the required level forgives."""
    weak: str = ""
    """The reason why a pass of this output proves little."""
    limit: str = ""
    """The requirement in place of the required level: `atol=0.01 rtol=0`, or `metrics`."""
    outside: float = 0.0
    """Share of the elements outside of what is required."""
    not_finite: float = 0.0
    """Share of the elements that are NaN or infinite in PyTorch."""


class MetricLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst value of a metric of the user's own."""

    name: str
    required: str
    """The bound: `<= 0.01`."""
    value: Number
    passed: bool
    sizes: dict[str, int] = {}
    weak: str = ""
    """The reason why a pass proves little."""


class ErrorLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The failure of a cell; see `t2n_core.check.outcome.ErrorInfo`."""

    error_class: str
    message: str
    hint: str = ""
    op: str = ""
    module_path: str = ""
    source: str = ""
    fingerprint: str = ""
    details: str = ""


class BenchmarkLine(msgspec.Struct, frozen=True):
    """Times of a cell for `--t2n-benchmark`, in seconds per round."""

    export: list[float]
    """Capture, lower and write; capture is shared by all engines of a case."""
    load: list[float]
    """Load and optimise."""
    run: list[float]
    """Time of `runs` runs on the first inputs."""
    runs: int


class CellLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="cell"):
    """The one outcome of a cell."""

    schema: Schema
    nodeid: str
    case: str
    """The node id without the engine: the row of the matrix."""
    target: str
    version: str
    label: str
    """Target and label are the column of the matrix."""
    status: Status
    stage: Stage
    level: TractCheckTolerance | None = None
    required: TractCheckTolerance | None = None
    expected: str = ""
    """The reason why a failure is no surprise (`xfail: …`); empty where a pass is expected."""
    outputs: list[OutputLine] = []
    metrics: list[MetricLine] = []
    sizes: list[dict[str, int]] = []
    failed_sizes: list[dict[str, int]] = []
    range: str = ""
    """The sizes that the archive holds for: `1 <= T <= 16, T % 2 == 0`."""
    refused_sizes: list[dict[str, int]] = []
    """Sizes just outside of the range, which the engine refused as it has to."""
    error: ErrorLine | None = None
    times: dict[str, Seconds] = {}
    """Seconds by stage."""
    archive_sha256: str = ""
    archive_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    facts: dict[str, Any] = {}
    reused: bool = False
    """True for a result of an earlier session on the same platform, with the same archive, numbers, engine, kernels and
    comparison (`--t2n-reuse`)."""
    op: str = ""
    """The operator that the case is about, where the test names one (property `t2n_op`)."""
    ops: list[str] = []
    """Torch operators of the captured model, in the order in which they come first."""
    dtype: str = ""
    """Type of the first input of floating point, else of the first input."""
    graph: str = ""
    """Key of the graph line with the graph that the engine was given."""
    notes: list[str] = []
    """Options of the export that had no effect, results of the model that the archive lacks, and outputs with NaN or
    infinities."""
    benchmark: BenchmarkLine | None = None
    tokens: str = ""
    """Tokens that are right, and all that were compared, of a model that generates: `64/64`."""
    platform: str = ""
    """Key of the platform where the cell was judged."""
    exported: str = ""
    """Key of the platform where the archive and the expected outputs were made, if that is another one (bundles)."""
    on: str = ""
    """Name of the platform in the title of the column, in a file with cells of several."""

    @property
    def engine(self) -> str:
        """Return the title of the column."""
        return column_title(self.target, self.label, self.on)


class RunLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="run"):
    """Facts that all cells of a run have in common."""

    schema: Schema
    started: Time
    """UTC, ISO 8601."""
    engines: list[EngineLine] = []
    versions: dict[str, str] = {}
    """Versions of Python and of the distributions that decide about results."""
    platform: str = ""
    level: TractCheckTolerance = DEFAULT_LEVEL
    """Tolerance of cases that name none."""
    transforms: list[str] = []
    """Transforms after which each passing cell was checked too."""
    arguments: list[str] = []
    platforms: list[PlatformLine] = []
    """The platforms of the cells, and those where bundles were exported."""
    source: str = ""
    """Digest of the project's Python files; empty where it is not known."""


class PlanLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="plan"):
    """The planned cells of this file on one platform and, of a shard, the plan that all shards have in common.

    Of several plans of a platform in a file, the last one counts.
    """

    schema: Schema
    shard: str = ""
    """`2/4`; empty if the run was not split."""
    sha256: str = ""
    """Digest of the planned cells of all shards, with their engines; empty if files of several plans were merged."""
    nodeids: list[str] = []
    """Node ids of the planned cells of all shards, in the order of collection; empty if the run was not split."""
    cells: dict[str, list[str]] = {}
    """Node ids of the planned cells of this file, by the engine at their end (`tract-0.21.19`)."""
    cut: str = ""
    """Digest of the shard of each case: what was cut in another way, by other durations, does not fit together."""
    platform: str = ""
    """Key of the platform of `cells`."""


class GraphLine(msgspec.Struct, frozen=True, tag_field="type", tag="graph"):
    """The graph text of an archive, written once for all cells that share it before the first of them."""

    schema: Schema
    key: str
    """Start of the SHA-256 of the text."""
    text: str


class EndLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="end"):
    """The last line of a file whose session came to its end, also to an early one."""

    schema: Schema
    ended: str
    """UTC, ISO 8601."""
    stopped: str = ""
    """The reason why not all planned cells ran, if the user stopped the session; those left are `not_run`."""


Record = RunLine | CellLine | PlanLine | GraphLine | EndLine


def column_title(target: str, label: str, on: str = "") -> str:
    """Return the title of a column: `tract 0.23.9 no-fma`, with the platform `tract 0.23.9 on aarch64`."""
    return f"{target} {label} on {on}" if on else f"{target} {label}"


def cells_of(records: Iterable[Record]) -> list[CellLine]:
    """Return the cells; of several records of one node id on one platform the last."""
    found: dict[tuple[str, str], CellLine] = {}
    for record in records:
        if isinstance(record, CellLine):
            found[record.nodeid, record.platform] = record
    return list(found.values())


def graphs_of(records: Iterable[Record]) -> dict[str, str]:
    """Return the texts of the graphs by their keys."""
    return {record.key: record.text for record in records if isinstance(record, GraphLine)}


__all__ = [
    "SCHEMA",
    "BenchmarkLine",
    "CellLine",
    "EndLine",
    "EngineLine",
    "ErrorLine",
    "GraphLine",
    "MetricLine",
    "OutputLine",
    "PlanLine",
    "PlatformLine",
    "Record",
    "RecordError",
    "RunLine",
    "cells_of",
    "column_title",
    "graphs_of",
]
