"""Docstrings of both packages open with a sentence, not with a relative clause without its noun."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

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
