"""The cells of a matrix as one Parquet file, a tenth of their JSON; needs DuckDB (`pytest-t2n[history]`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.matrix import Matrix, Row, is_surprise
from t2n_core.errors import T2NError
from t2n_core.extras import importing
from t2n_core.files import replace_with
from t2n_core.scratch import scratch_folder
from t2n_core.text import text_of

if TYPE_CHECKING:
    import duckdb

COLUMNS = {
    "nodeid": "VARCHAR", "case": "VARCHAR", "engine": "VARCHAR", "exporter": "VARCHAR", "target": "VARCHAR",
    "version": "VARCHAR", "label": "VARCHAR", "platform": "VARCHAR", "exported": "VARCHAR", "status": "VARCHAR",
    "stage": "VARCHAR", "level": "VARCHAR", "required": "VARCHAR", "expected": "VARCHAR", "surprise": "BOOLEAN",
    "reused": "BOOLEAN", "op": "VARCHAR", "ops": "VARCHAR[]", "dtype": "VARCHAR", "error_class": "VARCHAR",
    "message": "VARCHAR", "source": "VARCHAR", "fingerprint": "VARCHAR", "seconds": "DOUBLE",
    "archive_sha256": "VARCHAR", "archive_bytes": "BIGINT", "graph": "VARCHAR", "tokens": "VARCHAR",
    "times": "VARCHAR", "outputs": "VARCHAR", "facts": "VARCHAR", "operators": "VARCHAR",
}  # fmt: skip
"""Names and types of the columns; `times`, `outputs`, `facts` and `operators` are JSON."""
_MESSAGE = 2_000
"""Most characters of a message."""
_LONGEST = 4 << 20
"""Most bytes of the JSON of a cell; outputs and facts of a longer one are left out."""


@contextmanager
def database(folder: Path, memory: str = "256MB") -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB connection with a limit on memory, which spills to `folder`.

    Raises MissingPackageError without DuckDB, and T2NError for its errors.
    """
    with importing("a database of runs"):
        import duckdb
    base = duckdb.connect(
        config={
            "memory_limit": memory,
            "temp_directory": str(folder),
            "threads": 1,  # each thread has separate buffers
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    try:
        yield base
    except duckdb.Error as exc:
        raise T2NError(f"DuckDB: {text_of(exc)[:_MESSAGE]}") from None
    finally:
        base.close()


def write_parquet(matrix: Matrix, path: Path) -> int:
    """Write the cells by case, atomically, and return their number. Raises T2NError, OSError."""
    with scratch_folder() as folder, database(folder) as base:
        count = 0
        lines = folder / "cells.jsonl"
        with lines.open("wb") as sink:
            for row in matrix.rows:
                for cell in row.present:
                    line = msgspec.json.encode(_line(row, cell))
                    if len(line) > _LONGEST:
                        line = msgspec.json.encode(
                            {**_line(row, cell), "outputs": "", "facts": "", "times": "", "operators": "", "ops": []}
                        )
                    sink.write(line + b"\n")
                    count += 1
        base.execute(
            "CREATE VIEW cells AS SELECT * FROM read_json("
            f"'{_quote(lines)}', format = 'newline_delimited', maximum_object_size = {2 * _LONGEST}, "
            f"columns = {COLUMNS})"
        )
        path.parent.mkdir(parents=True, exist_ok=True)

        def write(draft: Path) -> None:
            base.execute(f"COPY cells TO '{_quote(draft)}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480)")

        replace_with(path, write)
    return count


def _line(row: Row, cell: CellLine) -> dict[str, Any]:
    error = cell.error
    fields = msgspec.to_builtins(cell)
    return {
        **{name: fields.get(name, getattr(cell, name)) for name in COLUMNS if hasattr(cell, name)},
        "engine": cell.engine,
        "surprise": is_surprise(cell),
        "reused": cell.reused,
        "op": row.op,
        "dtype": row.dtype,
        "error_class": error.error_class if error else "",
        "message": error.message[:_MESSAGE] if error else "",
        "source": error.source if error else "",
        "fingerprint": error.fingerprint if error else "",
        "seconds": sum(cell.times.values()),
        "times": msgspec.json.encode(cell.times).decode(),
        "outputs": msgspec.json.encode(cell.outputs).decode(),
        "facts": msgspec.json.encode(cell.facts).decode(),
        "operators": msgspec.json.encode(cell.operators).decode(),
    }


def _quote(path: Path) -> str:
    return str(path).replace("'", "''")
