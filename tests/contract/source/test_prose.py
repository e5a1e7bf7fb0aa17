"""Docstrings of both packages open with a sentence, not with a relative clause without its noun."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import t2n_core

ROOT = Path(__file__).parents[3]
PATHS = sorted(path for package in ("pytest_t2n", "t2n_core") for path in (ROOT / package).rglob("*.py"))
OPENING = re.compile(
    r"(What|Whether|Those|Of|That|Who|Which|Whose|Where|Behind"
    r"|Into|Between|From|With|Without|By|In|On|At|For|After|Before|Only|Also|Like|Both|Its|It|Nothing|Why|Under|Above)\b"
)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_docstrings_open_with_a_sentence(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            assert not OPENING.match(node.value.value.strip()), f"{path}:{node.lineno}: {node.value.value}"


@pytest.mark.parametrize("name", t2n_core.__all__)
def test_public_names_have_docstrings(name: str) -> None:
    value = getattr(t2n_core, name)
    if not callable(value):
        return
    assert value.__doc__
    for method, function in vars(value).items() if isinstance(value, type) else ():
        if not method.startswith("_") and callable(function):
            assert function.__doc__ or any(getattr(base, method, None) for base in value.__mro__[1:]), (
                f"{name}.{method}"
            )
