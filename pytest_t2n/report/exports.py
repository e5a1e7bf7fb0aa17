"""The records for other tools: CSV, CTRF, and the JSON Schema of `matrix.jsonl`."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from typing import Any

import msgspec

from pytest_t2n.records.schema import CellLine, Record
from pytest_t2n.report.matrix import Matrix, is_surprise
from pytest_t2n.report.tiers import releases_of, tiers_of, worst_text
from t2n_core.text import visible

_COLUMNS = (
    "nodeid", "case", "exporter", "target", "version", "label", "status", "stage", "level", "required", "expected",
    "reused", "tokens", "op", "dtype", "error_class", "message", "fingerprint", "max_abs", "mean_abs", "max_rel",
    "sqnr", "seconds", "archive_bytes", "archive_sha256", "tier", "runtime", "worst_of_tiers", "platform", "exported",
    "incomplete", "author", "path",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def matrix_csv(matrix: Matrix) -> str:
    """Return the cells as CSV, one line each; the column `incomplete` reports in each an incomplete file."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    releases = {index: release for release in releases_of(matrix.columns) for index in release.columns}
    lines = [(row, n, cell) for row in matrix.rows for n, cell in enumerate(row.cells) if cell is not None]
    for row, column, cell in lines:
        error = cell.error
        extra_columns: dict[str, Any] = {
            "op": row.op,
            "dtype": row.dtype,
            "error_class": error.error_class if error else "",
            "message": error.message.split("\n", 1)[0] if error else "",
            "fingerprint": error.fingerprint if error else "",
            "max_abs": _worst(cell, "max_abs"),
            "mean_abs": _worst(cell, "mean_abs"),
            "max_rel": _worst(cell, "max_rel"),
            "sqnr": min((float(output.sqnr) for output in cell.outputs if output.sqnr is not None), default=""),
            "seconds": f"{sum(cell.times.values()):.6f}",
            "tier": matrix.columns[column].tier,
            "runtime": matrix.columns[column].runtime,
            "worst_of_tiers": worst_text(tiers_of(matrix, row, releases[column])),
            "incomplete": "" if matrix.completeness.is_complete else matrix.completeness.notice,
        }
        values = (extra_columns[name] if name in extra_columns else getattr(cell, name) for name in _COLUMNS)
        writer.writerow([_safe(value) for value in values])
    return stream.getvalue()


def matrix_ctrf(matrix: Matrix) -> str:
    """Return the Common Test Report Format: an expected failure is `skipped`, with our own status in `rawStatus`."""
    tests = [_test(cell) for cell in matrix.cells]
    counts = {name: sum(test["status"] == name for test in tests) for name in ("passed", "failed", "skipped", "other")}
    started = int(datetime.fromisoformat(matrix.runs[0].started).timestamp() * 1000) if matrix.runs else 0
    spent = sum(test["duration"] for test in tests)
    summary = {"tests": len(tests), **counts, "pending": 0, "start": started, "stop": started + spent}
    versions = matrix.runs[0].versions if matrix.runs else {}
    tool = {"name": "pytest-t2n", "version": versions.get("pytest-t2n", "")}
    platforms = [msgspec.to_builtins(line) for run in matrix.runs for line in run.platforms]
    extra = {**versions, "platforms": platforms}
    results: dict[str, Any] = {"tool": tool, "summary": summary, "tests": tests, "environment": {"extra": extra}}
    if matrix.completeness.notice:
        results["extra"] = {"notice": matrix.completeness.notice}
    document = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results}
    return json.dumps(document, indent=1) + "\n"


def records_schema() -> str:
    """Return the JSON Schema of one line of `matrix.jsonl`."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Record)}
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _test(cell: CellLine) -> dict[str, Any]:
    status = "passed" if cell.status == "pass" else "skipped" if cell.status == "skip" or cell.expected else "failed"
    if cell.status in ("weak", "not_run"):
        status = "other"
    path, _, name = cell.nodeid.partition("::")
    test: dict[str, Any] = {
        "name": name or path,
        "status": status,
        "duration": round(sum(cell.times.values()) * 1000),
        "rawStatus": cell.status,
        "suite": [path],
        "filePath": path,
        "tags": [cell.engine],
        "extra": {"case": cell.case, "engine": cell.engine, "stage": cell.stage, "level": cell.level},
    }
    if cell.platform:
        test["extra"]["platform"] = cell.platform
    if cell.error is not None and (is_surprise(cell) or cell.expected):
        test["message"] = cell.error.message
        if cell.error.details:
            test["trace"] = cell.error.details
    return test


def _worst(cell: CellLine, name: str) -> str:
    metrics = (getattr(output, name) for output in cell.outputs)
    values = [float(value) for value in metrics if value is not None]
    return repr(max(values, key=lambda value: (value != value, value))) if values else ""


def _safe(value: Any) -> Any:
    """Return a value that is safe in a spreadsheet.

    A text that would run as a formula gets a mark before it, and control characters are made visible.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{visible(value)}" if value.startswith(_FORMULA) else visible(value)
    return value
