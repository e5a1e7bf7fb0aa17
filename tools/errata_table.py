"""The tables of the page on tract's releases, written from the quirks, the hazards and the behaviours.

python -m tools.errata_table
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from packaging.version import Version

from conformance.lab.pages.tables import table, with_table
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.tract import traits
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from t2n_core.nnef.tract.quirks.table import QUIRKS
from tools.build_spec_tables import known_releases

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "tract-releases.md"
HEAD = ("releases", "operators", "what is wrong", "write instead")


def releases_text(*ranges: Releases) -> str:
    """Return ranges as text, `0.21.6 to 0.22.4`; `until` and `to` include the release that they name."""
    versions = [Version(release) for release in known_releases()]
    return ", and ".join(_range_text(span, [release for release in versions if release in span]) for span in ranges)


def _range_text(span: Releases, versions: Sequence[Version]) -> str:
    if span.since is None and span.before is None:
        return "all"
    if span.since is None:
        return f"until {versions[-1]}"
    if span.before is None:
        return f"from {versions[0]} on"
    return f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else str(versions[0])


def hazard_table() -> str:
    """Return a line for each kind of statement that must not be written."""
    rows = []
    for hazard in HAZARDS:
        conditions = " and ".join(condition.text for condition in hazard.conditions)
        subject = _operators(hazard.operators) + (f" if {conditions}" if conditions else "")
        rows.append((releases_text(*hazard.releases), subject, hazard.reason, hazard.safe))
    return table(HEAD, rows)


def quirk_table() -> str:
    """Return a line for each kind of statement that is repaired."""
    return table(HEAD, ((releases_text(*q.releases), _operators(q.operators), q.reason, q.safe) for q in QUIRKS))


def _operators(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def behaviour_table() -> str:
    """Return a line for each behaviour, with its description in the class."""
    (body,) = (node.body for node in ast.walk(ast.parse(inspect.getsource(traits))) if isinstance(node, ast.ClassDef))
    described = {
        field.target.id: " ".join(text.value.value.split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }
    return table(
        ("releases", "behaviour", "name"),
        [
            (releases_text(*trait.metadata["releases"]), described[trait.name], f"`{trait.name}`")
            for trait in fields(traits.TractTraits)
        ],
    )


TABLES: Mapping[str, Callable[[], str]] = {
    "<!-- quirks -->": quirk_table,
    "<!-- hazards -->": hazard_table,
    "<!-- behaviours -->": behaviour_table,
}
"""Mark in the page -> its table."""


def page() -> str:
    """Return the page with up-to-date tables."""
    text = PAGE.read_text("utf-8")
    for begin, written in TABLES.items():
        text = with_table(text, begin, written())
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
