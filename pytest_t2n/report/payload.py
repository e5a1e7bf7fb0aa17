"""The data of the page in parts: the grid, which every visitor needs, and blocks of evidence, decompressed on demand.

A part is base64 of deflated JSON: a tenth of the size, and without characters that are special in HTML.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from pytest_t2n.records.platform import describe_platform
from pytest_t2n.records.schema import CellLine, EngineLine
from pytest_t2n.report.causes import Cause, cause_key
from pytest_t2n.report.matrix import Matrix, Row, is_surprise
from pytest_t2n.report.support import ladder_of, row_support
from pytest_t2n.report.tiers import releases_of, row_changes
from t2n_core.engine.provision.resolved import CPU
from t2n_core.engine.tiers import NATIVE
from t2n_core.level import LEVELS
from t2n_core.parity.stage import Stage, Status
from t2n_core.text import all_visible

_MOST_ROWS = 100_000
"""Most rows on a page."""
_MOST_GRAPHS = 100_000
"""Most graphs that are considered for a page."""
_GRAPH_BLOCK = 200_000
"""Characters per block of graphs."""
_GRAPHS = 1_600_000
"""Most compressed characters of graphs on a page; failures' graphs come first."""
_MOST_COUNTS = 20_000
"""Most distinct counts of operators on a page; cells with further ones have theirs in `matrix.jsonl` alone."""
_NO_COUNT = -1
"""The number of a cell without operators."""
_DETAILS_PER_CAUSE = 8
_DETAILS = 4_000_000
"""Most characters of stderr and tracebacks on a page."""
_MESSAGE = 4_000
_DIGITS = 5
_ON_THE_GRID = (
    "type", "schema", "case", "exporter", "target", "version", "label", "status", "stage", "level", "expected",
    "reused", "op", "dtype", "on", "tokens", "operators",
)  # fmt: skip
"""Fields of a cell that its row, its column or its code already contain."""


class PageOrder:
    """The order of the rows on the page: by suite, then by operator, or by test function."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, int]] = []
        self._words: dict[str, str] = {}
        self.cells = 0
        """Number of cells."""

    def add(self, row: Row) -> None:
        """Add a row."""
        same = self._words.setdefault
        suite, group = row.suite, row.op or row.function
        cells = row.present
        self._rows.append((same(suite, suite), same(group, group), row.case, min(map(_interest, cells), default=2)))
        self.cells += len(cells)

    @property
    def left_out(self) -> int:
        """Return the number of cases that do not fit on the page; cases that pass everywhere are removed first."""
        return max(0, len(self._rows) - _MOST_ROWS)

    def cases(self) -> list[str]:
        """Return the cases of the page in order."""
        rows = sorted(self._rows, key=lambda row: row[3])[:_MOST_ROWS] if self.left_out else self._rows
        return [case for _, _, case, _ in sorted(rows)]


class Payload:
    """Input of the page's script: the grid, and blocks of evidence and of graphs."""

    def __init__(
        self, matrix: Matrix, causes: Sequence[Cause], baseline: Matrix | None, cases: Sequence[str], *, block: int
    ) -> None:
        """`cases` are the rows in the order of the page, `block` is the number of cells in a block of evidence."""
        self._matrix, self._cases, self._block = matrix, cases, block
        self._wanted: dict[str, tuple[int, int]] = {}
        """Graphs with the priority and the position of their most interesting cell."""
        self.grid = self._grid(causes, baseline)
        self._places, self.graphs = self._packed_graphs()

    def evidence(self) -> Iterator[str]:
        """Yield the blocks of evidence, reading the cells once more."""
        cells = (cell for row in self._matrix.rows.pick(self._cases) for cell in row.present)
        facts = _evidence(cells, self._places)
        while block := list(islice(facts, self._block)):
            yield pack(block)

    def _grid(self, causes: Sequence[Cause], baseline: Matrix | None) -> str:
        matrix, sink = self._matrix, _Sink()
        names, ladder = matrix.suite_names, ladder_of(matrix)
        releases = [release for release in releases_of(matrix.columns) if len(release.columns) > 1]
        suites, ops, dtypes = _TextList(), _TextList(), _TextList()
        numbers = {cause.key: index + 1 for index, cause in enumerate(causes)}
        operators, numbers_of_cells = OperatorCounts(), list[int]()
        tokens: dict[int, str] = {}
        tiers: dict[str, str] = {}
        position = 0
        sink.write('{"rows":[')
        for count, row in enumerate(matrix.rows.pick(self._cases)):
            flat: list[int] = []
            for cell in row.cells:
                flat += (-1, 0) if cell is None else (_code(cell), numbers.get(cause_key(cell), 0))
                if cell is not None:
                    self._want_graph(cell, position)
                    if cell.tokens:
                        tokens[position] = cell.tokens
                    numbers_of_cells.append(operators.number(cell.operators))
                    position += 1
            changes = [f"{change.release}: {change.worst}" for change in row_changes(matrix, row, releases)]
            if changes:
                tiers[row.case] = "; ".join(changes)
            about = ops.index(row.op) if row.op else -1
            own_ops = [ops.index(op) for op in row.ops]
            line = [suites.index(names[row.suite]), about, own_ops, dtypes.index(row.dtype), row.name,
                    row_support(matrix, row, ladder), flat, row.case]  # fmt: skip
            sink.write(("," if count else "") + _json(line))
        rest = {
            "columns": [_column(column, matrix.columns) for column in matrix.columns],
            "tiers": tiers,
            "platforms": {line.key: describe_platform(line) for run in matrix.runs for line in run.platforms},
            "statuses": [status.value for status in Status],
            "stages": [stage.value for stage in Stage],
            "levels": [level.value for level in LEVELS],
            "suites": suites.texts,
            "ops": ops.texts,
            "dtypes": dtypes.texts,
            "causes": [_cause(cause) for cause in causes],
            "tokens": tokens,
            "operators": numbers_of_cells,
            "block": self._block,
        }
        sink.write("]," + _json(rest)[1:-1] + ',"baseline":')
        _write_baseline(sink, baseline, operators)
        sink.write(f',"counted":{_json(operators.fields())}}}')
        return sink.text()

    def _want_graph(self, cell: CellLine, position: int) -> None:
        rank, best = _interest(cell), self._wanted.get(cell.graph)
        if best is None and (len(self._wanted) >= _MOST_GRAPHS or cell.graph not in self._matrix.graphs):
            return
        if best is None or rank < best[0]:
            self._wanted[cell.graph] = rank, position

    def _packed_graphs(self) -> tuple[dict[str, int], list[str]]:
        """Return the position of each graph, block × 4096 + index in it, and as many blocks as fit."""
        keys = sorted(self._wanted, key=self._wanted.__getitem__)
        places: dict[str, int] = {}
        blocks: list[str] = []
        room = _GRAPHS
        for texts in _groups(keys, self._matrix):
            packed = pack(list(texts.values()))
            if len(packed) > room:
                break
            room -= len(packed)
            places |= {key: len(blocks) << 12 | index for index, key in enumerate(texts)}
            blocks.append(packed)
        return places, blocks


class _Sink:
    """Compresses a stream of text."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(9)
        self._parts: list[bytes] = []

    def write(self, text: str) -> None:
        self._parts.append(self._deflate.compress(text.encode()))

    def text(self) -> str:
        self._parts.append(self._deflate.flush())
        return base64.b64encode(b"".join(self._parts)).decode()


def pack(value: object) -> str:
    """Return a part as text, with control characters made visible."""
    return base64.b64encode(zlib.compress(_json(value).encode(), 9)).decode()


def _json(value: object) -> str:
    """Return JSON, with control characters made visible."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if "\\u00" in text or not text.isprintable():  # otherwise everything is visible
        text = json.dumps(all_visible(value), separators=(",", ":"), ensure_ascii=False)
    return text


def select_option(engine: EngineLine, engines: Sequence[EngineLine] = ()) -> str:
    """Return the pytest option that gives a session this engine, one of `engines`.

    A user's target with its own engine runs in every session with engines, and a target over the Khronos tools in a
    session with these tools.
    """
    if engine.target == "khronos":
        return "--t2n-khronos"
    if engine.target != "tract" and not engine.kind:
        others = [other for other in engines if other.target in ("tract", "khronos")]
        same = [other for other in others if (other.target, other.version) == ("khronos", engine.version)]
        return select_option((same or others)[0]) if others else ""
    words = [f"--t2n-tract={engine.requested if engine.kind == 'cli' else engine.version}"]
    words += [f"--t2n-cpu={engine.tier}"] if engine.tier not in ("", NATIVE) else []
    words += [f"--t2n-runtime={engine.runtime}"] if engine.runtime not in ("", CPU) else []
    words += [f"--t2n-exporter={engine.exporter}"] if engine.exporter else []
    return " ".join(words)


def _column(engine: EngineLine, engines: Sequence[EngineLine]) -> dict[str, str]:
    return {
        "title": engine.title,
        "target": engine.qualified_target,
        "label": engine.title.removeprefix(f"{engine.qualified_target} "),
        "select": select_option(engine, engines),
        "kernels": " ".join(engine.kernels),
    }


def _cause(cause: Cause) -> dict[str, str]:
    error = cause.first.error
    words = [error.error_class, error.op, error.module_path] if error is not None else []
    return {"key": cause.key, "title": cause.title[:_MESSAGE], "words": " ".join(filter(None, words))}


def _write_baseline(sink: _Sink, matrix: Matrix | None, operators: OperatorCounts) -> None:
    if matrix is None:
        sink.write("null")
        return
    head = {
        "columns": [engine.title for engine in matrix.columns],
        "started": min((run.started for run in matrix.runs), default=""),
    }
    sink.write(_json(head)[:-1] + ',"rows":[')
    for count, row in enumerate(matrix.rows):
        codes = [-1 if cell is None else _code(cell) for cell in row.cells]
        counted = [_NO_COUNT if cell is None else operators.number(cell.operators) for cell in row.cells]
        sink.write(("," if count else "") + _json([row.case, codes, counted]))
    sink.write("]}")


_STATUS = {status.value: index for index, status in enumerate(Status)}
_STAGE = {stage.value: index for index, stage in enumerate(Stage)}
_LEVEL = {level.value: index + 1 for index, level in enumerate(LEVELS)}


def _code(cell: CellLine) -> int:
    """Return status, stage, level (0 for none), expected, reused, surprising as hexadecimal digits, from the right."""
    flags = (bool(cell.expected)) | cell.reused << 4 | is_surprise(cell) << 8
    level = _LEVEL[cell.level] if cell.level else 0
    return _STATUS[cell.status] | _STAGE[cell.stage] << 4 | level << 8 | flags << 12


class OperatorCounts:
    """A numbered list of distinct counts of operators."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[str, int], ...], int] = {}
        self._names: dict[str, int] = {}

    def number(self, operators: Mapping[str, int]) -> int:
        """Return the number of a count, which is new or known."""
        key = tuple(sorted(operators.items()))
        if not key or (key not in self._numbers and len(self._numbers) >= _MOST_COUNTS):
            return _NO_COUNT
        return self._numbers.setdefault(key, len(self._numbers))

    def fields(self) -> dict[str, Any]:
        """Return the names, and each count as a flat list of pairs: the place of a name, and its number of nodes."""
        index_of = self._names.setdefault
        counts = [[part for name, count in key for part in (index_of(name, len(self._names)), count)]
                  for key in self._numbers]  # fmt: skip
        return {"names": list(self._names), "counts": counts}


class _TextList:
    """A numbered list of distinct texts."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def index(self, word: str) -> int:
        return self._places.setdefault(word, len(self._places))

    @property
    def texts(self) -> list[str]:
        return list(self._places)


def _evidence(cells: Iterable[CellLine], graphs: dict[str, int]) -> Iterator[dict[str, Any]]:
    detail_counts: Counter[str] = Counter()
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
                detail_counts[key] += 1
                room -= len(cell.error.details)
                if detail_counts[key] > _DETAILS_PER_CAUSE or room < 0:
                    error["details"] = "The same cause has details in other cells; these are in matrix.jsonl."
        yield facts


def _groups(keys: Iterable[str], matrix: Matrix) -> Iterator[dict[str, str]]:
    """Yield graphs by their keys, in groups that fit into a block."""
    group: dict[str, str] = {}
    size = 0
    for key in keys:
        group[key] = text = matrix.graphs[key]
        size += len(text)
        if size > _GRAPH_BLOCK or len(group) == 4096:
            yield group
            group, size = {}, 0
    if group:
        yield group


def _interest(cell: CellLine) -> int:
    return 0 if is_surprise(cell) else 1 if cell.status != "pass" else 2


def _short(value: Any) -> Any:
    """Return numbers with few digits, since further digits would be most of the file."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return value
