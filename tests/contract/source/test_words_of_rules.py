"""Rules write operators as methods of the emitter: a misspelt one is an error here, before anything runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.spec import known_operators, spec_for

ROOT = Path(__file__).parents[3] / "t2n_core"
RULES = sorted([*(ROOT / "op").rglob("*.py"), *(ROOT / "nnef" / "tract").rglob("*.py")])


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Return the names of all attributes of an emitter, and of all operators of both targets."""
    emitters = [emitter_for(spec_for("tract", "0.23.9")), emitter_for(spec_for("khronos", "1.0.5"))]
    attributes = {name for emitter in emitters for name in (*dir(type(emitter)), *vars(emitter))}
    return attributes | {*known_operators("tract"), *known_operators("khronos")}


def words_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each attribute of `g`, or of an argument that is annotated as an emitter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "g":
            yield node.lineno, node.attr


def test_the_search_finds_attributes() -> None:
    assert list(words_of(ast.parse("x = g.add(g.size, y.mul)"))) == [(1, "add"), (1, "size")]


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_word_is_known(path: Path, known: set[str]) -> None:
    words = [
        f"line {line}: g.{word}"
        for line, word in words_of(ast.parse(path.read_text("utf-8")))
        if word not in known and word.rstrip("_") not in known
    ]
    assert not words


@pytest.mark.parametrize("word", ["streching", "slize", "_is_know"])
def test_a_misspelt_word_is_no_operator(word: str) -> None:
    g: Emitter = emitter_for(spec_for("tract", "0.23.9"))
    with pytest.raises(AttributeError, match=word):
        getattr(g, word)
    assert callable(g.slice)
    assert callable(g.and_)
