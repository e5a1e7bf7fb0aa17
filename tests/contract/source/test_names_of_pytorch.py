"""Operators by name, private names and patches of PyTorch are looked up in `torch_graph/compat` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HOME = ROOT / "t2n_core/torch_graph/compat"
FILES = [
    path
    for package in ("t2n_core", "pytest_t2n")
    for path in sorted((ROOT / package).rglob("*.py"))
    if HOME not in path.parents
]
OWN = ("t2n_capture", "t2n_experts", "t2n_loops", "t2n_numbers", "t2n_recurrent")
"""Namespaces of operators that this package defines."""
TO_OVERRIDE = ("torch.nn.Module._save_to_state_dict",)
"""Methods that PyTorch documents for subclasses to override."""


def lookups(tree: ast.AST) -> Iterator[str]:
    """Yield the operators and private names of PyTorch that a file looks up itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (name for alias in node.names if is_private(name := f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Attribute):
            path = dotted(node)
            if is_private(path) or (path.startswith("torch.ops.") and path.split(".")[2] not in OWN):
                yield path
        elif isinstance(node, ast.Call) and dotted(node.func) in ("getattr", "patch.object") and node.args:
            owner = dotted(node.args[0])
            if is_private(owner) or (owner.startswith("torch.ops") and owner.split(".")[-1] not in OWN):
                yield ast.unparse(node)


def dotted(node: ast.AST) -> str:
    """Return `torch.ops.aten` for the expression; an empty string for anything but names with attributes."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def is_private(path: str) -> bool:
    first, *parts = path.split(".")
    if first != "torch" or "__" in path or path in TO_OVERRIDE:
        return False
    return path.startswith("torch.fx.experimental") or any(part.startswith("_") for part in parts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_other_file_looks_up_a_name_that_a_release_may_lack(path: Path) -> None:
    assert sorted(set(lookups(ast.parse(path.read_text("utf-8"))))) == []


@pytest.mark.parametrize(
    "line",
    [
        "torch.ops.aten.cholesky(x)",
        "getattr(torch.ops.aten, name)",
        "from torch._ops import OpOverload",
        "from torch.utils import _pytree",
        "from torch.fx.experimental.symbolic_shapes import ShapeEnv",
        "torch._C.DispatchKey",
    ],
)
def test_such_a_line_is_found(line: str) -> None:
    assert list(lookups(ast.parse(line)))


@pytest.mark.parametrize("line", ["torch.ops.t2n_loops.solve(x)", "torch.__version__", "torch.linalg.inv(x)"])
def test_a_public_or_own_name_is_none(line: str) -> None:
    assert not list(lookups(ast.parse(line)))
