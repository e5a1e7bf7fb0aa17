"""A large matrix whose numbers, names, errors and graphs differ as those of a real one do; the same each time."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable

from pytest_t2n.records.nodeids import engine_id
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    EndLine,
    EngineLine,
    ErrorLine,
    GraphLine,
    OutputLine,
    PlanLine,
    Record,
    RunLine,
    cells_of,
)
from tests.releases import RECENT

LABELS = ("0.19.15", "0.20.22", "0.21.19", "0.22.4", RECENT)
_FAMILIES = ("add", "conv1d", "conv2d", "gelu", "gru", "layer_norm", "linear", "lstm", "matmul", "softmax", "topk")
_DTYPES = ("float32", "float16", "float64", "int64")
_LEVELS = ("exact", "close", "approximate", "very")
_FAILURES = ("mismatch", "crash", "error", "timeout", "unsupported")


def folded(matrix, part):
    """Return a part of the report after all rows of a matrix."""
    matrix.fold(part)
    return part


def many_records(cells: int, labels: tuple[str, ...] = LABELS, *, seed: int = 7) -> list[Record]:
    """A run line, then `cells` cells of all labels, with a graph per case."""
    rng = random.Random(seed)
    engines = [EngineLine("tract", label, label, "all-minors", "wheel", rng.randbytes(32).hex()) for label in labels]
    run = RunLine(SCHEMA, "2026-01-02T03:04:05+00:00", engines, {"python": "3.11.7"}, "linux", arguments=["-n", "2"])
    graphs: dict[str, str] = {}
    cell_lines: list[CellLine] = []
    for number in range(cells // len(labels)):
        op, dtype = rng.choice(_FAMILIES), rng.choice(_DTYPES)
        suite = f"suites/test_{'layers' if number % 3 else 'operators'}.py"
        case = f"{suite}::test_{op}[{op}-{dtype}-{number}]"
        graph = _graph(rng, op)
        graphs[graph.key] = graph.text
        broken = rng.choice(_FAILURES) if rng.random() < 0.12 else ""
        fixed_at = rng.randrange(len(labels) + 1) if broken else 0
        for index, label in enumerate(labels):
            status = broken if index < fixed_at else "pass"
            cell_lines.append(_cell(rng, case, label, status, f"aten::{op}", dtype, graph.key))
    return whole([run, *_with_graphs(cell_lines, graphs)])


def _cell(rng: random.Random, case: str, label: str, status: str, op: str, dtype: str, graph: str) -> CellLine:
    outputs = []
    if status in ("pass", "mismatch"):
        outputs = [_output(rng, name, status, dtype) for name in ("output", "state")[: rng.randrange(1, 3)]]
    error = None
    if status not in ("pass", "mismatch"):
        file_number = rng.randrange(40)
        message = f"{status} of {op}: thread panicked at core/src/ops/file_{file_number}.rs:{rng.randrange(900)}:9"
        details = "".join(f"{n:4}: {rng.randbytes(4).hex()} - frame of {op} {file_number}\n" for n in range(20))
        key = hashlib.sha256(f"{status} {op} {file_number}".encode()).hexdigest()[:12]
        error = ErrorLine("EngineCrash", message, op=op, source="model.py:12", fingerprint=key, details=details)
    stages = ("capture", "reference", "lower", "write", "load", "optimise", "run")
    return CellLine(
        SCHEMA,
        f"{case[:-1]}-tract-{label}]",
        case,
        "tract",
        label,
        label,
        status,  # type: ignore[arg-type]
        "compare" if outputs else "run",
        rng.choice(_LEVELS) if status == "pass" else None,  # type: ignore[arg-type]
        "approximate",
        expected="the engine cannot do it" if status == "crash" and rng.random() < 0.5 else "",
        outputs=outputs,
        sizes=[{"T": size} for size in (9, 1, 2, 13)],
        error=error,
        times={stage: rng.lognormvariate(-7, 1) for stage in stages},
        archive_sha256=rng.randbytes(32).hex(),
        archive_bytes=rng.randrange(2_000, 90_000),
        facts={"input": [["x", "B,7,F32"]], "output": [["output", "B,5,F32"]], "registries": ["tract_core", "onnx"]},
        reused=rng.random() < 0.02 and status == "pass",
        ops=[op],
        operators=_operators(random.Random(f"{case} {label}"), label) if outputs else {},
        dtype=dtype,
        graph=graph,
    )


def _operators(rng: random.Random, label: str) -> dict[str, int]:
    """Operators as two generations of an engine list them: products were fused with what follows before."""
    product = "LirMatMulUnary" if label < "0.21" else "OptMatMul"
    nodes = rng.randrange(1, 12)
    return {product: nodes, f"{product}Pack": nodes, "Add": rng.randrange(1, 30), "MoveAxis": rng.randrange(1, 5)}


def _output(rng: random.Random, name: str, status: str, dtype: str) -> OutputLine:
    expected = rng.gauss(0, 1)
    difference = rng.lognormvariate(-15, 2)
    return OutputLine(
        name,
        dtype,
        [rng.randrange(1, 9), rng.randrange(1, 99)],
        "mismatch" if status == "mismatch" else "pass",
        "approximate",
        "close",
        max_abs=difference,
        max_rel=difference / abs(expected),
        max_ulp=rng.randrange(1, 400),
        mean_abs=difference / 3,
        sqnr=-20 * math.log10(difference),
        worst_index=[rng.randrange(9), rng.randrange(99)],
        worst_expected=expected,
        worst_actual=expected + difference,
        outliers={"exact": rng.random(), "close": rng.random() / 9, "approximate": 0.0, "very": 0.0, "super": 0.0},
    )


def whole(records: Iterable[Record], *, planned: Iterable[Record] = (), stopped: str = "") -> list[Record]:
    """The records as sessions leave them: with plans behind the runs, of them and of `planned`, and an end."""
    record_list = list(records)
    runs = [record for record in record_list if isinstance(record, RunLine)]
    cells: dict[str, dict[str, list[str]]] = {}
    for cell in cells_of([*record_list, *planned]):
        cells.setdefault(cell.platform, {}).setdefault(engine_id(cell.target, cell.label), []).append(cell.nodeid)
    plans = [
        PlanLine(SCHEMA, cells=engine_cells, platform=platform)
        for platform, engine_cells in (cells or {"": {}}).items()
    ]
    end = EndLine(SCHEMA, "2026-01-02T03:05:06+00:00", stopped)
    return [*runs, *plans, *(record for record in record_list if record not in runs), end]


def _with_graphs(cells: Iterable[CellLine], graphs: dict[str, str]) -> list[Record]:
    """Return the cells with the line of each graph before the first cell that has it."""
    records: list[Record] = []
    written = set()
    for cell in cells:
        if cell.graph in graphs and cell.graph not in written:
            written.add(cell.graph)
            records.append(GraphLine(SCHEMA, cell.graph, graphs[cell.graph]))
        records.append(cell)
    return records


def _graph(rng: random.Random, op: str) -> GraphLine:
    lines = [f"  {op}_{n} = {op}(x_{n}, axes = [{rng.randrange(4)}]);" for n in range(rng.randrange(4, 30))]
    body = "\n".join(lines)
    text = f"version 1.0;\n\ngraph net(x_0) -> (output) # {rng.randrange(10**6)}\n{{\n{body}\n}}\n"
    return GraphLine(SCHEMA, hashlib.sha256(text.encode()).hexdigest()[:16], text)
