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
    "comput(e|ed|es|ing) of": "computed from",
    "every query a key": "no query without a key, no fully masked row",
    "gravest": "worst",
    "in the manner of": "like",
    "inside of": "inside",
    "is said": "is stated, is declared",
    "said of": "stated about, declared for",
    "(has )?no form": "not supported, cannot be expressed",
    "nothing shows": "cannot prove",
    "(other|right|same|wrong) numbers": "other values, wrong values",
    "on right inputs": "with right inputs",
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


LONE_PARTICIPLES = frozenset(
    "built chosen compared computed counted cut drawn found given held kept known left lost made merged moved named "
    "passed said seen shown taken told unchanged wanted written".split()
)
"""What a function is not named after: verbs and nouns state what it does or returns."""


def lone_participles(source: str) -> list[tuple[int, str]]:
    """Return the line and the name of each function, but properties, that is named by a participle alone."""
    return [
        (node.lineno, node.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") in LONE_PARTICIPLES
        if not any("property" in ast.unparse(one) for one in node.decorator_list)
    ]


def test_the_search_finds_lone_participles() -> None:
    source = "def _told(): ...\ndef told_twice(): ...\nclass A:\n    @property\n    def kept(self): ...\n"
    assert lone_participles(source) == [(1, "_told")]


@pytest.mark.parametrize("package", ["t2n_core", "pytest_t2n"])
def test_functions_are_not_named_by_a_participle_alone(package: str) -> None:
    paths = sorted((ROOT / package).rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): lone_participles(path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}
