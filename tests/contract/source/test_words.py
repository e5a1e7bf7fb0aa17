"""Prose takes the field's word: docstrings, messages and documentation hold none of the words in a short list.

The list grows by words that have no hits left; it never has exceptions for a single line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INSTEAD = {
    "behind": "after, beyond, trailing",
    "every query a key": "no query without a key, no fully masked row",
    "gravest": "worst",
    "inside of": "inside",
    "is said": "is stated, is declared",
    "said of": "stated about, declared for",
    "(has )?no form": "not supported, cannot be expressed",
    "(other|wrong) numbers": "other values, wrong values",
    "somebody": "someone",
    "stand-ins?": "override, custom operator",
    "told": "reported, given",
    "twins?": "copy",
    "(which|that) else": "otherwise",
    "whole numbers?": "integer",
}
"""Word, as a regular expression -> what to write instead."""
WORDS = re.compile(rf"\b({'|'.join(INSTEAD)})\b".replace(" ", r"\s+"), re.IGNORECASE)
PAGES = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "docs").rglob("*.md")]
CODE = [p for name in ("t2n_core", "pytest_t2n", "conformance", "tools") for p in (ROOT / name).rglob("*.py")]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of a page, or of each text with a space in a file of code: docstrings and messages."""
    content = path.read_text("utf-8")
    if path.suffix == ".md":
        yield 1, content
        return
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def hits(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each hit in a text that begins on a line."""
    for found in WORDS.finditer(text):
        yield line + text.count("\n", 0, found.start()), found[0]


def test_the_search_finds_words_of_prose_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        'told = {"told": 1}\n\n\ndef f() -> None:\n    """Begin.\n\n    Behind it, whole\n    numbers.\n    """\n'
    )
    assert [hit for line, text in prose(path) for hit in hits(line, text)] == [(7, "Behind"), (7, "whole\n    numbers")]


@pytest.mark.parametrize("path", sorted([*PAGES, *CODE]), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_prose_takes_the_words_of_the_field(path: Path) -> None:
    found = [hit for line, text in prose(path) for hit in hits(line, text)]
    assert not found, f"{path}: {found}; see INSTEAD in {Path(__file__).name}"
