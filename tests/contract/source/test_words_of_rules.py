"""Rules write operators as methods of the emitter: a misspelt one is an error here, before anything runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2n_core.errors import SpecError
from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.spec import known_operators, spec_for
from tests.releases import NEWEST

ROOT = Path(__file__).parents[3] / "t2n_core"
RULES = sorted([*(ROOT / "op").rglob("*.py"), *(ROOT / "nnef" / "tract").rglob("*.py")])


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Return the names of all attributes of an emitter, and of all operators of both targets."""
    emitters = [emitter_for(spec_for("tract", NEWEST)), emitter_for(spec_for("khronos", "1.0.5"))]
    attributes = {name for emitter in emitters for name in (*dir(type(emitter)), *vars(emitter))}
    return attributes | {*known_operators("tract"), *known_operators("khronos")}


def words_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each attribute of `g`, or of an argument that is annotated as an emitter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "g":
            yield node.lineno, node.attr


def test_the_search_finds_attributes() -> None:
    assert list(words_of(ast.parse("x = g.add(g.size, y.mul)"))) == [(1, "add"), (1, "size")]


def test_every_word_is_known(known: set[str]) -> None:
    words = [
        f"{path}:{line}: g.{word}"
        for path in RULES
        for line, word in words_of(ast.parse(path.read_text("utf-8")))
        if word not in known and word.rstrip("_") not in known
    ]
    assert not words


VERSIONS = ("0.19.2", "0.20.22", "0.21.5", "0.21.19", "0.22.4", NEWEST)


@pytest.fixture(scope="module")
def attributes() -> dict[str, set[str]]:
    """Return the names of the arguments of each operator, in any release of tract or in the standard."""
    argument_names: dict[str, set[str]] = {}
    specs = [*(spec_for("tract", version) for version in VERSIONS), spec_for("khronos", "1.0.5")]
    for spec in specs:
        for name in spec.names():
            argument_names.setdefault(name, {"out"}).update(p.name for p in spec.operator(name).parameters)
    return argument_names


def keywords_of(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the operator and the name of each argument by name of a call such as `g.conv(x, w, stride=2)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        word, first = node.func.attr, node.args[0] if node.args else None
        if word in ("one", "call") and isinstance(first, ast.Constant):
            word = str(first.value)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "g":
            yield from ((node.lineno, word.rstrip("_"), keyword.arg) for keyword in node.keywords if keyword.arg)


def test_the_search_finds_keywords() -> None:
    tree = ast.parse("g.add(x, y, out=a)\ng.one('neg', x, **more)\ng.call('conv', x, stride=2)")
    assert list(keywords_of(tree)) == [(1, "add", "out"), (3, "conv", "stride")]


def test_every_attribute_is_known(attributes: dict[str, set[str]]) -> None:
    wrong = [
        f"{path}:{line}: {operator}({keyword}=)"
        for path in RULES
        for line, operator, keyword in keywords_of(ast.parse(path.read_text("utf-8")))
        if operator in attributes and not hasattr(Emitter, operator)
        if keyword not in attributes[operator] | {"outs"}
    ]
    assert not wrong


@pytest.mark.parametrize("word", ["streching", "slize", "_is_know"])
def test_a_misspelt_word_is_no_operator(word: str) -> None:
    g: Emitter = emitter_for(spec_for("tract", NEWEST))
    with pytest.raises(AttributeError, match=word):
        getattr(g, word)
    assert callable(g.slice)
    assert callable(g.and_)


def test_an_operator_of_another_target_is_refused_with_its_name() -> None:
    g: Emitter = emitter_for(spec_for("khronos", "1.0.5"))
    x = Value("x", FLOAT32, (2, 3))
    with pytest.raises(SpecError, match=r"khronos .* has no operator `tract_core_erf`"):
        g.tract_core_erf(x)
