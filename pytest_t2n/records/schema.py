"""The schema of `matrix.jsonl`: run, plan, one line per cell interleaved with lines of graphs, and the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from pytest_t2n.records.nodeids import engine_id, qualified_target
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.parity.stage import AUTHOR, Author, Stage, Status

SCHEMA = 1
"""Incremented when a field changes its meaning or is removed, but not for a new field with a default."""
Schema = Annotated[int, msgspec.Meta(ge=1)]
Number = float | int | str
"""NaN and infinities are the strings `nan`, `inf`, `-inf`."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Time = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$")]


class RecordError(Exception):
    """A file of records that cannot be read; the message names the file and the line."""


class PlatformLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine with its packages, which affect results like the engine does. Cells refer to it by its key."""

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
    """Variables that choose threads and kernels of PyTorch and numpy, if they are set."""
    versions: dict[str, str] = {}
    """Versions of Python and of the distributions that affect results."""


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
    """Features of the processor whose kernels it can use, by the engine's names."""
    environment: dict[str, str] = {}
    """Variables of its process that choose kernels and threads."""
    platform: str = ""
    """Key of the platform."""
    on: str = ""
    """Name of the platform in the title, in a file with cells of several platforms."""
    exporter: str = ""
    """The exporter whose files it ran; empty for this package's own."""
    exporter_version: str = ""
    """Version of another exporter; empty without a version."""

    @property
    def qualified_target(self) -> str:
        """Return the target, after the exporter if it is not this package's: `torch-onnx tract`."""
        return qualified_target(self.target, self.exporter)

    @property
    def title(self) -> str:
        """Return exporter, target, label and, in a file with several, the platform: the title of the column."""
        return column_title(self.qualified_target, self.label, self.on)

    @property
    def id(self) -> str:
        """Return the end of test ids: `tract-0.21.19`, `tract-0.23.8-no-fma`, `torch-onnx-tract-0.21.19`, `khronos`."""
        return engine_id(self.target, self.label, self.exporter)


class OutputLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst comparison of one output; see `t2n_core.parity.comparison.OutputComparison`."""

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
    mean_abs: Number | None = None
    """None if nothing was compared."""
    sqnr: Number | None = None
    """Signal-to-quantisation-noise ratio in decibels; None for integers, and with a NaN or an infinity."""
    worst_index: list[int] | None = None
    worst_expected: bool | Number | None = None
    worst_actual: bool | Number | None = None
    outliers: dict[str, Number] = {}
    nan_mismatches: int = 0
    inf_mismatches: int = 0
    moves: Number | None = None
    """The largest difference of an element between samples of equal shapes."""
    moving: float = 0.0
    """Share of the elements that change by more than the required level tolerates."""
    weak: str = ""
    """The reason why a pass of this output proves little."""
    limit: str = ""
    """The requirement instead of the required level: `atol=0.01 rtol=0`, or `metrics`."""
    outside: float = 0.0
    """Share of the elements outside the requirement."""
    not_finite: float = 0.0
    """Share of the elements that are NaN or infinite in PyTorch."""


class MetricLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst value of a user's metric."""

    name: str
    required: str
    """The bound: `<= 0.01`."""
    value: Number
    passed: bool
    sizes: dict[str, int] = {}
    weak: str = ""
    """The reason why a pass proves little."""
    reference: str = ""
    """The weights it was measured against; empty if the model has the archive's weights."""


class ErrorLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The failure of a cell; see `t2n_core.parity.outcome.ErrorInfo`."""

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
    """Exporter, target and label are the column of the matrix."""
    status: Status
    stage: Stage
    level: TractCheckTolerance | None = None
    required: TractCheckTolerance | None = None
    path: str = ""
    """The path through the engine on which it failed: `declutter`, `optimise-only`, `fixed-symbols`."""
    paths: list[str] = []
    """The paths through the engine that were checked, in order."""
    expected: str = ""
    """The reason why a failure is expected (`xfail: …`); empty if a pass is expected."""
    outputs: list[OutputLine] = []
    metrics: list[MetricLine] = []
    sizes: list[dict[str, int]] = []
    failed_sizes: list[dict[str, int]] = []
    range: str = ""
    """The sizes for which the archive is valid: `1 <= T <= 16, T % 2 == 0`."""
    refused_sizes: list[dict[str, int]] = []
    """Sizes just outside the range, which the engine refused as required."""
    error: ErrorLine | None = None
    times: dict[str, Seconds] = {}
    """Seconds by stage."""
    archive_sha256: str = ""
    archive_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    facts: dict[str, Any] = {}
    reused: bool = False
    """True for a result of an earlier session on the same platform, with the same archive, samples, engine, kernels and
    comparison (`--t2n-reuse`)."""
    op: str = ""
    """The operator under test, if the test declares one (property `t2n_op`)."""
    ops: list[str] = []
    """Torch operators of the captured model, in the order of their first use."""
    operators: dict[str, int] = {}
    """Operators of the graph after the engine's optimiser, with the number of nodes of each; no inputs, no constants.

    Those in the body of a scan are named `Scan/Tanh`. If the engine does not list them, the fact `operators_unknown`
    has the reason.
    """
    dtype: str = ""
    """Dtype of the first floating-point input, or otherwise of the first input."""
    graph: str = ""
    """Key of the graph line with the graph of the archive."""
    notes: list[str] = []
    """Options of the export without effect, results of the model that the archive lacks, and outputs with NaN or
    infinities."""
    benchmark: BenchmarkLine | None = None
    tokens: str = ""
    """Matching tokens out of all compared ones, for a model that generates: `64/64`."""
    platform: str = ""
    """Key of the platform on which the cell was judged."""
    exported: str = ""
    """Key of the platform on which the archive and the expected outputs were created, if different (bundles)."""
    on: str = ""
    """Name of the platform in the title of the column, in a file with cells of several platforms."""
    reads: dict[str, str] = {}
    """Digests of the files, and of the `$VARIABLES`, that the process of the test read until then, and that no earlier
    record of it has: `--t2n-resume` keeps results only where they are the same."""
    exporter: str = ""
    """The exporter that wrote the file; empty for this package's own."""

    @property
    def qualified_target(self) -> str:
        """Return the target, after the exporter if it is not this package's: `torch-onnx tract`."""
        return qualified_target(self.target, self.exporter)

    @property
    def engine(self) -> str:
        """Return the title of the column."""
        return column_title(self.qualified_target, self.label, self.on)

    @property
    def author(self) -> str:
        """Return the author of a mismatch: `exporter`, `engine` or `both`; empty if it is not known."""
        value = self.facts.get(AUTHOR)
        return next((author.value for author in Author if author.value == value), "")


class RunLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="run"):
    """Facts common to all cells of a run."""

    schema: Schema
    started: Time
    """UTC, ISO 8601."""
    engines: list[EngineLine] = []
    versions: dict[str, str] = {}
    """Versions of Python and of the distributions that decide about results."""
    platform: str = ""
    level: TractCheckTolerance = DEFAULT_LEVEL
    """Tolerance of cases without one."""
    transforms: list[str] = []
    """Transforms after which each passing cell was also checked."""
    arguments: list[str] = []
    platforms: list[PlatformLine] = []
    """The platforms of the cells, and those on which bundles were exported."""
    source: str = ""
    """Digest of the project's Python files; empty if unknown."""
    options: str = ""
    """Digest of the hidden parts of the command line, which other plugins explain."""


class PlanLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="plan"):
    """The planned cells of this file on one platform and, for a shard, the common plan of all shards.

    The last of several plans of a platform in a file counts.
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
    """Digest of the shard of each case: shards that were partitioned differently, by other durations, do not fit."""
    platform: str = ""
    """Key of the platform of `cells`."""


class GraphLine(msgspec.Struct, frozen=True, tag_field="type", tag="graph"):
    """The graph text of an archive, written once for all cells that share it before the first of them."""

    schema: Schema
    key: str
    """Start of the SHA-256 of the text."""
    text: str


class EndLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="end"):
    """The last line of a file whose session ended, even if early."""

    schema: Schema
    ended: str
    """UTC, ISO 8601."""
    stopped: str = ""
    """The reason why not all planned cells ran, if the user stopped the session; those left are `not_run`."""


Record = RunLine | CellLine | PlanLine | GraphLine | EndLine


def column_title(target: str, label: str, on: str = "") -> str:
    """Return the title of a column: `tract 0.23.8 no-fma`, with the platform `tract 0.23.8 on aarch64`."""
    return f"{target} {label} on {on}" if on else f"{target} {label}"


def cells_of(records: Iterable[Record]) -> list[CellLine]:
    """Return the cells; the last of several records of one node id on one platform counts."""
    cells: dict[tuple[str, str], CellLine] = {}
    for record in records:
        if isinstance(record, CellLine):
            cells[record.nodeid, record.platform] = record
    return list(cells.values())
