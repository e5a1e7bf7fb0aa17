"""A lower folder never imports a higher one; the engines' side never imports torch; nobody imports the suites."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = [
    "errors",
    "nnef",
    "torch_graph",
    "op",
    "rewriter",
    "engine",
    "check",
    "inference_target",
    "reference",
    "drawn",
    "rounding",
    "streaming",
    "export",
    "bisect",
]
MAY_IMPORT_TORCH = {"torch_graph", "op", "rewriter", "inference_target", "reference", "drawn", "export", "bisect"}


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


def layer(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize("path", sorted(modules("t2n_core")), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_core_imports_downwards_only(path: Path) -> None:
    parts = path.relative_to(ROOT / "t2n_core").with_suffix("").parts
    if parts == ("__init__",):
        return
    own = parts[0]
    for module, _ in imports(path):
        assert not module.startswith(("pytest_t2n", "conformance", "torch_to_nnef")), module
        if module.startswith("t2n_core."):
            assert ORDER.index(layer(module)) <= ORDER.index(own), f"{own} imports {module}"


@pytest.mark.parametrize("path", sorted(modules("t2n_core")), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_only_the_upper_side_imports_torch(path: Path) -> None:
    own = path.relative_to(ROOT / "t2n_core").with_suffix("").parts[0]
    # the interpreter of the Khronos tools is written in torch; it lives in a child process
    if own in MAY_IMPORT_TORCH or path.name.startswith("khronos"):
        return
    assert not [m for m, _ in imports(path) if m.split(".")[0] == "torch"]


@pytest.mark.parametrize("path", sorted(modules("pytest_t2n")), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_plugin_imports_torch_and_numpy_late(path: Path) -> None:
    heavy = [m for m, early in imports(path) if early and m.split(".")[0] in ("torch", "numpy")]
    assert not heavy
    assert not [m for m, _ in imports(path) if m.startswith("conformance")]


def test_public_names() -> None:
    import t2n_core

    assert sorted(t2n_core.__all__) == t2n_core.__all__
    for name in t2n_core.__all__:
        assert getattr(t2n_core, name).__name__ == name
