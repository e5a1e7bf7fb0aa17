"""The data of the page in parts: the grid, which every visitor needs, and blocks of evidence, inflated on demand.

A part is base64 of deflated JSON: a tenth of the size, and no character that HTML treats specially.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from pytest_t2n.records.platform import describe_platform
from pytest_t2n.records.schema import CellLine, EngineLine
from pytest_t2n.report.causes import Cause, cause_key
from pytest_t2n.report.matrix import Matrix, Row, is_surprise
from pytest_t2n.report.support import row_support
from pytest_t2n.report.tiers import tier_changes
from t2n_core.check.level import LEVELS
from t2n_core.check.stage import Stage, Status
from t2n_core.engine.provision.resolved import CPU
from t2n_core.engine.tract.tiers import NATIVE
from t2n_core.text import all_visible

_BLOCK = 256
"""Cells per block of evidence."""
_GRAPH_BLOCK = 200_000
"""Characters per block of graphs."""
_GRAPHS = 1_600_000
"""Characters of graphs on a page, packed; those of failures come first."""
_DETAILS_PER_CAUSE = 8
_DETAILS = 4_000_000
"""Characters of stderr and tracebacks on a page."""
_MESSAGE = 4_000
_DIGITS = 5
_ON_THE_GRID = (
    "type", "schema", "case", "target", "version", "label", "status", "stage", "level", "expected", "reused", "op",
    "dtype", "on", "tokens",
)  # fmt: skip
"""Fields of a cell that its row, its column or its code contain already."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Input of the page's script."""

    grid: str
    evidence: list[str]
    graphs: list[str]


def payload_of(matrix: Matrix, causes: Sequence[Cause], baseline: Matrix | None) -> Payload:
    """Return all parts, packed."""
    rows = sorted(matrix.rows, key=lambda row: (row.suite, row.op or row.function, row.case))
    cells = _cells(rows)
    places, graph_blocks = _graphs(matrix, cells)
    facts = _evidence(map(matrix.whole, cells), places)
    evidence = []
    while block := list(islice(facts, _BLOCK)):
        evidence.append(pack(block))
    return Payload(pack(_grid(matrix, rows, causes, baseline)), evidence, graph_blocks)


def _cells(rows: Iterable[Row]) -> list[CellLine]:
    """Return the cells in the order in which the page counts them."""
    return [cell for row in rows for cell in row.cells if cell is not None]


def pack(value: object) -> str:
    """Return a part as text; control characters in it are shown."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if "\\u00" in text or not text.isprintable():  # else there is nothing that would not show
        text = json.dumps(all_visible(value), separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def select_option(engine: EngineLine) -> str:
    """Return the option of pytest that selects this engine."""
    if engine.target == "khronos":
        return "--t2n-khronos"
    words = [f"--t2n-tract={engine.requested if engine.kind == 'cli' else engine.version}"]
    words += [f"--t2n-cpu={engine.tier}"] if engine.tier not in ("", NATIVE) else []
    words += [f"--t2n-runtime={engine.runtime}"] if engine.runtime not in ("", CPU) else []
    return " ".join(words)


def _grid(matrix: Matrix, rows: Sequence[Row], causes: Sequence[Cause], baseline: Matrix | None) -> dict[str, Any]:
    names = matrix.suite_names
    suites, ops, dtypes = _Words(), _Words(), _Words()
    numbers = {cause.key: index + 1 for index, cause in enumerate(causes)}
    lines = []
    for row in rows:
        codes = [[] if cell is None else [_code(cell), numbers.get(cause_key(cell), 0)] for cell in row.cells]
        flat = [number for code in codes for number in (code or (-1, 0))]
        own_ops = [ops.index(op) for op in row.ops]
        about = ops.index(row.op) if row.op else -1
        lines.append(
            [suites.index(names[row.suite]), about, own_ops, dtypes.index(row.dtype), row.name,
             row_support(matrix, row), flat, row.case]
        )  # fmt: skip
    return {
        "columns": [
            {
                "title": one.title,
                "target": one.target,
                "label": one.title.removeprefix(f"{one.target} "),
                "select": select_option(one),
                "kernels": " ".join(one.kernels),
            }
            for one in matrix.columns
        ],
        "tiers": _tiers(matrix),
        "platforms": {line.key: describe_platform(line) for run in matrix.runs for line in run.platforms},
        "statuses": [status.value for status in Status],
        "stages": [stage.value for stage in Stage],
        "levels": [level.value for level in LEVELS],
        "suites": suites.words,
        "ops": ops.words,
        "dtypes": dtypes.words,
        "causes": [_cause(cause) for cause in causes],
        "rows": lines,
        "tokens": {place: cell.tokens for place, cell in enumerate(_cells(rows)) if cell.tokens},
        "block": _BLOCK,
        "baseline": _baseline(baseline),
    }


def _tiers(matrix: Matrix) -> dict[str, str]:
    """Return what is published of each case that other kernels change: `tract 0.23.9: pass approximate (no-fma)`."""
    found: dict[str, list[str]] = {}
    for change in tier_changes(matrix):
        found.setdefault(change.row.case, []).append(f"{change.release}: {change.worst}")
    return {case: "; ".join(texts) for case, texts in found.items()}


def _cause(cause: Cause) -> dict[str, str]:
    error = cause.first.error
    words = [error.error_class, error.op, error.module_path] if error is not None else []
    return {"key": cause.key, "title": cause.title[:_MESSAGE], "words": " ".join(filter(None, words))}


def _baseline(matrix: Matrix | None) -> dict[str, Any] | None:
    if matrix is None:
        return None
    rows = [[row.case, [-1 if cell is None else _code(cell) for cell in row.cells]] for row in matrix.rows]
    started = min((run.started for run in matrix.runs), default="")
    return {"columns": [engine.title for engine in matrix.columns], "rows": rows, "started": started}


_STATUS = {status.value: index for index, status in enumerate(Status)}
_STAGE = {stage.value: index for index, stage in enumerate(Stage)}
_LEVEL = {level.value: index + 1 for index, level in enumerate(LEVELS)}


def _code(cell: CellLine) -> int:
    """Return status, stage, level (0 for none), expected, reused, surprising as hexadecimal digits, from the right."""
    flags = (bool(cell.expected)) | cell.reused << 4 | is_surprise(cell) << 8
    level = _LEVEL[cell.level] if cell.level else 0
    return _STATUS[cell.status] | _STAGE[cell.stage] << 4 | level << 8 | flags << 12


class _Words:
    """A numbered list of different texts."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def index(self, word: str) -> int:
        return self._places.setdefault(word, len(self._places))

    @property
    def words(self) -> list[str]:
        return list(self._places)


def _evidence(cells: Iterable[CellLine], graphs: dict[str, int]) -> Iterator[dict[str, Any]]:
    kept: Counter[str] = Counter()
    room = _DETAILS
    for cell in cells:
        fields: dict[str, Any] = msgspec.to_builtins(cell)
        facts = {name: _short(value) for name, value in fields.items() if name not in _ON_THE_GRID}
        if cell.expected:
            facts["expected"] = cell.expected
        if cell.graph:
            facts["graph"] = graphs.get(cell.graph, -1)
        facts["archive_sha256"] = cell.archive_sha256[:16]
        if cell.error is not None:
            key = cause_key(cell)
            error = facts["error"]
            error["message"] = cell.error.message[:_MESSAGE]
            if cell.error.details:
                kept[key] += 1
                room -= len(cell.error.details)
                if kept[key] > _DETAILS_PER_CAUSE or room < 0:
                    error["details"] = "The same cause has details in other cells; these are in matrix.jsonl."
        yield facts


def _graphs(matrix: Matrix, cells: Sequence[CellLine]) -> tuple[dict[str, int], list[str]]:
    """Return the place of each graph, block × 4096 + index in it, and the blocks, as many as there is room for."""
    wanted = [cell.graph for cell in sorted(cells, key=_interest) if cell.graph in matrix.graphs]
    places: dict[str, int] = {}
    blocks: list[str] = []
    room = _GRAPHS
    for group in _grouped(dict.fromkeys(wanted), matrix):
        packed = pack([matrix.graphs[key] for key in group])
        if len(packed) > room:
            break
        room -= len(packed)
        places |= {key: len(blocks) << 12 | place for place, key in enumerate(group)}
        blocks.append(packed)
    return places, blocks


def _grouped(keys: Iterable[str], matrix: Matrix) -> Iterable[list[str]]:
    group: list[str] = []
    size = 0
    for key in keys:
        group.append(key)
        size += len(matrix.graphs[key])
        if size > _GRAPH_BLOCK or len(group) == 4096:
            yield group
            group, size = [], 0
    if group:
        yield group


def _interest(cell: CellLine) -> int:
    return 0 if is_surprise(cell) else 1 if cell.status != "pass" else 2


def _short(value: Any) -> Any:
    """Return numbers with few digits: the others would be most of the file, and nobody reads them."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return value


__all__ = ["Payload", "pack", "payload_of", "select_option"]
