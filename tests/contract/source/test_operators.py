"""Shapes of operators are computed on fake tensors: a kernel for the meta device that reads data breaks PyTorch."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = [p for package in ("t2n_core", "pytest_t2n", "conformance") for p in sorted((ROOT / package).rglob("*.py"))]


def meta_kernels(tree: ast.AST) -> list[int]:
    """Return the lines that register a kernel for the meta device."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if getattr(call.func, "attr", "") == "impl"
        and any(isinstance(arg, ast.Constant) and arg.value == "Meta" for arg in call.args)
    ]


def test_the_search_finds_kernels() -> None:
    assert meta_kernels(ast.parse("library.impl('f', shapes, 'Meta')\nlibrary.impl('f', run, 'CPU')")) == [1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_operator_has_a_kernel_for_the_meta_device(path: Path) -> None:
    assert not meta_kernels(ast.parse(path.read_text("utf-8")))
