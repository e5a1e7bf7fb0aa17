"""Badges for shields.io: one per engine version, with the worst of its kernel tiers, and one per other tier."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pytest_t2n.records.completeness import Completeness
from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.matrix import Matrix, count_statuses, is_surprise
from pytest_t2n.report.tiers import releases_of, worst_of

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def badges(matrix: Matrix) -> dict[str, str]:
    """Return the JSON text of each badge by its file name, such as `badge-tract-0.21.19.json`."""
    titles = {matrix.columns[index].title: matrix.column(index) for index in range(len(matrix.columns))}
    for release in releases_of(matrix.columns):
        worst = (worst_of(row.cells[index] for index in release.columns) for row in matrix.rows)
        titles[release.name] = [cell for cell in worst if cell is not None]
    found = {}
    for title, cells in titles.items():
        if cells:
            name = _UNSAFE.sub("_", f"badge-{title.replace(' ', '-', 1)}.json")
            found[name] = json.dumps(_badge(title, cells, matrix.completeness), indent=2, sort_keys=True) + "\n"
    return found


def _badge(title: str, cells: Sequence[CellLine], state: Completeness) -> dict[str, object]:
    counts = count_statuses(cells)
    judged = len(cells) - counts["skip"]
    message = f"{counts['pass']}/{judged} pass"
    if not state.whole:
        message, colour = state.notice, "lightgrey"
    elif counts["not_run"]:
        message, colour = f"incomplete, {message}", "lightgrey"
    elif not judged:
        message, colour = "no cases", "lightgrey"
    elif not any(map(is_surprise, cells)):
        colour = "brightgreen"
    else:
        colour = "yellow" if counts["pass"] * 2 > judged else "red"
    return {"schemaVersion": 1, "label": title, "message": message, "color": colour}


__all__ = ["badges"]
