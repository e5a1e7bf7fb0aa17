"""Pages that are one HTML file: style and script are inside, and the content security policy allows only these."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2

from t2n_core.files import replacing


def source_of(environment: jinja2.Environment, name: str) -> str:
    """Return a file beside the templates, unrendered."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def write_single_file(
    environment: jinja2.Environment, template: str, path: Path, *, style: str, script: str, **values: Any
) -> None:
    """Write a page from its template, piece by piece and atomically. Raises OSError."""
    hashes = {"style_hash": _csp_hash(style), "script_hash": _csp_hash(script)}
    pieces = environment.get_template(template).generate(style=style, script=script, **hashes, **values)
    with replacing(path) as sink:
        for piece in pieces:
            sink.write(piece.encode())


def _csp_hash(text: str) -> str:
    """Return the hash of a text for a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
