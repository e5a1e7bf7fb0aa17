"""Versions are compared in one place: everywhere else a behaviour has a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ALLOWED = {
    "t2n_core/nnef/releases.py": "ranges of releases",
    "t2n_core/nnef/spec.py": "the oldest and the newest release of the spec table",
    "t2n_core/torch_graph/compat/releases.py": "a PyTorch newer than the tested ones",
    "t2n_core/engine": "the choice of engines by the user",
    "pytest_t2n": "the order of engines in a session",
}
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def compared_versions(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each comparison of which one side is named a version, or made one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ORDERED) for op in node.ops):
            sides = [node.left, *node.comparators]
            names = {getattr(part, "attr", getattr(part, "id", "")) for side in sides for part in ast.walk(side)}
            if any(name in ("Version", "version", "since") for name in names):
                yield node.lineno


def files() -> list[Path]:
    found = [p for package in ("t2n_core", "pytest_t2n") for p in sorted((ROOT / package).rglob("*.py"))]
    names = {path: path.relative_to(ROOT).as_posix() for path in found}
    return [path for path, name in names.items() if not any(name.startswith(allowed) for allowed in ALLOWED)]


def test_the_search_finds_comparisons() -> None:
    code = "if g.spec.version >= Version('0.21'): pass\nif 1 < n: pass\nok = version in releases\n"
    assert list(compared_versions(ast.parse(code))) == [1]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_version_is_compared(path: Path) -> None:
    assert not list(compared_versions(ast.parse(path.read_text("utf-8"))))
