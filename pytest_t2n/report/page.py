"""The matrix as one HTML file that needs no network: data, style and script are inside."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jinja2

from pytest_t2n.records.counts import authors_text
from pytest_t2n.records.folder import remove_parts
from pytest_t2n.records.platform import describe_platform
from pytest_t2n.report.causes import CauseFold
from pytest_t2n.report.markdown import SummaryFold
from pytest_t2n.report.matrix import Matrix, Row
from pytest_t2n.report.payload import PageOrder, Payload
from pytest_t2n.report.single_file import source_of, write_single_file
from pytest_t2n.report.support import SupportFold
from t2n_core.files import write_whole
from t2n_core.level import LEVELS
from t2n_core.parity.stage import Status
from t2n_core.text import visible

_ONE_FILE = 100_000
"""Most cells for which the page is one file."""
_BLOCK = 256
"""Cells per block of evidence in the page."""
_LARGE_BLOCK = 512
"""Cells per block of evidence in a separate file."""
_SCRIPTS = ("data.js", "grid.js", "evidence.js", "changes.js", "main.js")
"""Files that are joined in this order as one script."""


class PageFold:
    """All statistics of the page, collected in one pass over the rows."""

    def __init__(self, matrix: Matrix, summary: SummaryFold) -> None:
        """`summary` has the statistics of the columns and of the kernel tiers, and adds the rows itself."""
        self.summary = summary
        self.causes = CauseFold()
        self.support = SupportFold(matrix)
        self.order = PageOrder()

    def add(self, row: Row) -> None:
        """Add a row."""
        self.causes.add(row)
        self.support.add(row)
        self.order.add(row)


def write_page(matrix: Matrix, numbers: PageFold, directory: Path, baseline: Matrix | None = None) -> list[Path]:
    """Write `index.html`, for a large matrix with a folder of parts that it loads; return the files.

    With a baseline, the changes since then come first. Raises OSError.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_t2n.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_display,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = _duration
    environment.filters["platform"] = describe_platform
    style = source_of(environment, "matrix.css")
    body = "\n".join(source_of(environment, name) for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{body}\n}})();\n'
    causes, order, tiers, totals = (
        numbers.causes.causes(),
        numbers.order,
        numbers.summary.tiers,
        numbers.summary.columns,
    )
    apart = order.cells > _ONE_FILE
    payload = Payload(matrix, causes, baseline, order.cases(), block=_LARGE_BLOCK if apart else _BLOCK)
    parts = write_parts(payload, directory) if apart else []
    folder = parts[0].parent.name if parts else ""
    index = directory / "index.html"
    write_single_file(
        environment,
        "index.html.j2",
        index,
        style=style,
        script=script,
        matrix=matrix,
        columns=totals.columns(),
        counts=totals.statuses,
        cells=order.cells,
        surprises=totals.surprises,
        weak=totals.weak,
        expected=totals.expected,
        reused=totals.reused,
        authors=authors_text(totals.authors),
        left_out=order.left_out,
        levels=[level.value for level in LEVELS],
        statuses=[status.value for status in Status if totals.statuses[status.value]],
        causes=causes,
        support=numbers.support.support(),
        tiers=tiers,
        baseline=baseline,
        parallel=_is_parallel(matrix),
        measured=totals.is_measured,
        grid=payload.grid,
        evidence=() if apart else payload.evidence(),
        graphs=() if apart else payload.graphs,
        folder=folder,
    )
    remove_parts(directory, keep=folder)
    return [index, *parts]


def _display(value: object) -> object:
    """Return the value of an expression as text for the page."""
    return visible(value) if type(value) is str else value


def _is_parallel(matrix: Matrix) -> bool:
    """Return whether a run shared its processors between workers of xdist, so that its times are only indicative."""
    arguments: list[str] = [argument for run in matrix.runs for argument in run.arguments]
    return any(argument.startswith(("-n", "--numprocesses", "--dist", "-j")) for argument in arguments)


def _duration(seconds: float) -> str:
    """Return `12 µs`, `3.4 ms`, `1.20 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


_PARTS = "page-"
"""Prefix of the folder's name; a digest of the grid follows, so that a page never loads another page's parts."""


def write_parts(payload: Payload, directory: Path) -> list[Path]:
    """Write the blocks of evidence and of graphs, and return their files, at least one. Raises OSError."""
    folder = directory / f"{_PARTS}{hashlib.sha256(payload.grid.encode()).hexdigest()[:12]}"
    files = [_write(folder, f"evidence-{number}", block) for number, block in enumerate(payload.evidence())]
    return files + [_write(folder, f"graphs-{number}", block) for number, block in enumerate(payload.graphs)]


def _write(folder: Path, name: str, block: str) -> Path:
    path = folder / f"{name}.js"
    write_whole(path, f't2nPart("{name}","{block}");\n')
    return path
