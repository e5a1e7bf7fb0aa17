"""The glossary has each term once, and names files and folders that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = re.findall(
    r"^\| ([^|`]+) \|.*\| ([^|]*) \|$", (ROOT / "docs/explanation/glossary.md").read_text("utf-8"), re.MULTILINE
)


def test_each_term_stands_once() -> None:
    terms = [term for terms, _ in ROWS for term in terms.split(", ") if term not in ("term", "---")]
    assert len(terms) > 30
    assert sorted(set(terms)) == sorted(terms)


def test_files_and_folders_exist() -> None:
    named = [path for _, code in ROWS for path in re.findall(r"`([\w.]+/[\w./]+)`", code)]
    assert len(named) > 20
    missing = [path for path in named if not any((ROOT / base / path).exists() for base in ("", "t2n_core"))]
    assert not missing
