"""The matrix as one HTML file that needs no network: data, style and script are inside."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import Any

import jinja2
import msgspec

from pytest_t2n.records import CellLine
from pytest_t2n.report.matrix import Matrix, count_statuses

_OF_THE_ROW = ("type", "schema", "case", "target", "version", "label")
"""Fields of a cell that its row and column say already."""


def matrix_page(matrix: Matrix) -> str:
    """The text of `index.html`."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_t2n.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = _source(environment, "matrix.css")
    script = _source(environment, "matrix.js")
    return environment.get_template("index.html.j2").render(
        runs=matrix.runs,
        columns=[
            {"engine": engine, "counts": count_statuses(matrix.column(index))}
            for index, engine in enumerate(matrix.columns)
        ],
        statuses=matrix.statuses,
        rows=len(matrix.rows),
        cells=len(matrix.cells),
        style=style,
        script=script,
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
        data=_payload(matrix),
    )


def _payload(matrix: Matrix) -> str:
    """The rows as base64 of deflated JSON: text without a character that HTML knows, and a tenth of the size."""
    payload = {
        "columns": [engine.title for engine in matrix.columns],
        "statuses": matrix.statuses,
        "rows": [
            {"case": row.case, "differs": row.differs, "cells": [cell and _fields(cell) for cell in row.cells]}
            for row in matrix.rows
        ],
    }
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _fields(cell: CellLine) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(cell)
    return {name: value for name, value in fields.items() if name not in _OF_THE_ROW}


def _source(environment: jinja2.Environment, name: str) -> str:
    """A file beside the templates, as it is."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _csp_hash(text: str) -> str:
    """What a content security policy allows this very text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


__all__ = ["matrix_page"]
