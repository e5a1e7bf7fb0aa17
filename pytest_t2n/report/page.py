"""The matrix as one HTML file that needs no network: data, style and script are inside."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter

import jinja2

from pytest_t2n.records.platform import describe_platform
from pytest_t2n.report.causes import find_causes
from pytest_t2n.report.columns import columns_of, is_measured
from pytest_t2n.report.matrix import Matrix, is_surprise
from pytest_t2n.report.payload import payload_of
from pytest_t2n.report.support import op_support
from pytest_t2n.report.tiers import releases_of, tier_changes
from t2n_core.check.level import LEVELS
from t2n_core.text import visible

_SCRIPTS = ("data.js", "grid.js", "evidence.js", "changes.js", "main.js")
"""Files that are joined in this order as one script."""


def matrix_page(matrix: Matrix, baseline: Matrix | None = None) -> str:
    """Return the text of `index.html`; with a baseline, the changes since then stand first."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_t2n.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = _duration
    environment.filters["platform"] = describe_platform
    style = _source(environment, "matrix.css")
    body = "\n".join(_source(environment, name) for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{body}\n}})();\n'
    causes = find_causes(matrix.cells)
    return environment.get_template("index.html.j2").render(
        matrix=matrix,
        columns=columns_of(matrix),
        counts=Counter(cell.status for cell in matrix.cells),
        surprises=sum(map(is_surprise, matrix.cells)),
        expected=sum(bool(cell.expected) for cell in matrix.cells),
        reused=sum(cell.reused for cell in matrix.cells),
        levels=[level.value for level in LEVELS],
        causes=causes,
        support=op_support(matrix),
        tiers=tier_changes(matrix),
        with_tiers=any(len(release.columns) > 1 for release in releases_of(matrix.columns)),
        baseline=baseline,
        parallel=_is_parallel(matrix),
        measured=is_measured(matrix),
        payload=payload_of(matrix, causes, baseline),
        style=style,
        script=script,
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
    )


def _shown(value: object) -> object:
    """Return the value of an expression as the page shows it."""
    return visible(value) if type(value) is str else value


def _is_parallel(matrix: Matrix) -> bool:
    """Return True if a run shared its processors between workers of xdist: its times are indicative."""
    arguments: list[str] = [one for run in matrix.runs for one in run.arguments]
    return any(one.startswith(("-n", "--numprocesses", "--dist", "-j")) for one in arguments)


def _duration(seconds: float) -> str:
    """Return `12 µs`, `3.4 ms`, `1.20 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _source(environment: jinja2.Environment, name: str) -> str:
    """Return a file beside the templates, unrendered."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _csp_hash(text: str) -> str:
    """Return the hash by which a content security policy allows this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


__all__ = ["matrix_page"]
