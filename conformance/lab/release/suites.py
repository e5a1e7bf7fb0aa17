"""The suites in a new release: cells that end otherwise than in the release before, fusions, times."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from conformance.lab.machine import ROOT
from conformance.lab.release.differences import MOST_LINES, describe_differences
from pytest_t2n.records.file import each_record
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.schema import CellLine
from t2n_core.engine.protocol import OPERATORS

LEFT_OUT: Final = ("aten", "aten_dynamic", "models")
"""Suites that take hours; the definitions cover the operators."""
_SECONDS: Final = 7200.0
Cells = Mapping[str, CellLine]


def compare_suites(release: str, against: str, folder: Path) -> Sequence[str]:
    """Return what changed in the suites, except `LEFT_OUT`, on all paths through the engine."""
    files = sorted((ROOT / "conformance" / "suites").glob("test_*.py"))
    suites = [str(file) for file in files if file.stem.removeprefix("test_") not in LEFT_OUT]
    expected = sorted((ROOT / "conformance" / "expectations").glob("*.toml"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites, "-n", "2"]
    options = [f"--t2n-tract={against},{release}", "--t2n-allow-unlisted", f"--t2n-report={folder}"]
    subprocess.run(
        [*command, *options, *(f"--t2n-expect={file}" for file in expected)],
        cwd=ROOT, check=False, stdout=subprocess.DEVNULL, timeout=_SECONDS,
    )  # fmt: skip
    cells = cells_by_version(folder / MATRIX_FILE)
    return describe_suites(cells.get(against, {}), cells.get(release, {}))


def cells_by_version(file: Path) -> dict[str, dict[str, CellLine]]:
    """Return the cells of a file of records by engine and case."""
    cells: dict[str, dict[str, CellLine]] = {}
    for record in each_record(file):
        if isinstance(record, CellLine):
            cells.setdefault(record.version, {})[record.case] = record
    return cells


def describe_suites(before: Cells, now: Cells) -> list[str]:
    """Return the lines about cells in two releases: statuses, operators after optimising, times."""
    first, second = ({case: _status(cell) for case, cell in cells.items()} for cells in (before, now))
    lines = describe_differences("cells", first, second)
    common = [case for case in before if case in now]
    fused = [line for case in common for line in _fusions(case, before[case], now[case])]
    lines += ["", "Operators after optimising:", "", *fused[:MOST_LINES]] if fused else []
    for stage in ("load", "run"):
        ratios = [now[c].times[stage] / before[c].times[stage] for c in common if _is_timed(stage, before[c], now[c])]
        if ratios:
            median = statistics.median(ratios)
            lines += ["", f"Time of `{stage}`: {median:.2f} times that before, the median of {len(ratios)} cases."]
    return lines


def _status(cell: CellLine) -> str:
    return f"{cell.status}" if cell.level is None else f"{cell.status} at {cell.level}"


def _fusions(case: str, before: CellLine, now: CellLine) -> Iterator[str]:
    """Yield a line if the engine's optimised graph has other operators."""
    counts = Counter(now.facts.get(OPERATORS, {}))
    counts.subtract(before.facts.get(OPERATORS, {}))
    changed = {name: count for name, count in sorted(counts.items()) if count}
    if changed and OPERATORS in before.facts and OPERATORS in now.facts:
        yield f"- `{case}`: {', '.join(f'{name} {count:+d}' for name, count in changed.items())}"


def _is_timed(stage: str, *cells: CellLine) -> bool:
    return all(cell.times.get(stage, 0.0) > 0 for cell in cells)
