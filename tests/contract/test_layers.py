"""The plugin imports torch and numpy late, and the converter exports its public names.

The layers of both packages are contracts of import-linter, in pyproject.toml.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, at import time) of every import in a file; those under TYPE_CHECKING do not count."""
    tree = ast.parse(path.read_text("utf-8"))
    guarded = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    inner = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in inner
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) not in inner


@pytest.mark.parametrize("path", sorted(modules("pytest_t2n")), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_plugin_imports_torch_and_numpy_late(path: Path) -> None:
    heavy = [m for m, early in imports(path) if early and m.split(".")[0] in ("torch", "numpy")]
    assert not heavy


def test_public_names() -> None:
    import t2n_core

    assert sorted(t2n_core.__all__) == t2n_core.__all__
    for name in t2n_core.__all__:
        assert getattr(t2n_core, name).__name__ == name
