"""What only one place may do: look up names that a release of PyTorch may lack, compare and name versions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from t2n_core.engine.provision.known import newest_of_lines
from tools.lint.tree import CODE, PACKAGES, Finding, Source, Tree

COMPAT = "t2n_core/torch_graph/compat/"
OWN = ("t2n_capture", "t2n_experts", "t2n_loops", "t2n_numbers", "t2n_recurrent", "t2n_spectra")
"""Namespaces of operators that this package defines."""
TO_OVERRIDE = ("torch.nn.Module._save_to_state_dict",)
"""Methods that PyTorch documents for subclasses to override."""
COMPARE_VERSIONS = {
    "t2n_core/nnef/releases.py": "ranges of releases",
    "t2n_core/nnef/spec.py": "the oldest and the newest release of the spec table",
    "t2n_core/torch_graph/compat/releases.py": "a PyTorch newer than the tested ones",
    "t2n_core/engine": "the choice of engines by the user",
    "pytest_t2n": "the order of engines in a session",
}
NAME_THE_NEWEST = {
    "t2n_core/engine/tract/transforms/table.py": "the releases that brought transforms",
    "t2n_core/nnef/tract": "what a release does otherwise than others",
    "t2n_core/op/aten/cumulative.py": "an operator that it brought",
    "conformance/dialect/passes/known.py": "mistakes of its passes",
    "conformance/lab/plant/faults/plants.py": "mistakes that it has",
    "conformance/lab/upstream/cases.py": "the same",
    "docs/how-to/results/releases.md": "what a scan of it prints",
    "tests/unit/nnef/test_spec.py": "an argument that it brought",
    "tests/unit/nnef/tract/test_traits.py": "the first release that does otherwise",
}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def names_of_pytorch(tree: Tree) -> Iterator[Finding]:
    """Yield the operators and private names of PyTorch that a file outside of `compat` looks up itself."""
    for source in tree.python(*PACKAGES):
        if not source.name.startswith(COMPAT):
            for line, name in _lookups(source.nodes):
                yield source.finding(line, f"`{name}` is looked up in {COMPAT} alone")


def _lookups(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each operator and private name of PyTorch that code looks up."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if _is_private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((node.lineno, name) for name in names if _is_private(name))
        elif isinstance(node, ast.Attribute):
            path = _dotted(node)
            if _is_private(path) or (path.startswith("torch.ops.") and path.split(".")[2] not in OWN):
                yield node.lineno, path
        elif isinstance(node, ast.Call) and _dotted(node.func) in ("getattr", "patch.object") and node.args:
            owner = _dotted(node.args[0])
            if _is_private(owner) or (owner.startswith("torch.ops") and owner.split(".")[-1] not in OWN):
                yield node.lineno, ast.unparse(node)


def _dotted(node: ast.AST) -> str:
    """Return `torch.ops.aten` for the expression; an empty string for anything but names with attributes."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _is_private(path: str) -> bool:
    """Return whether a dotted path is a name of PyTorch that it does not promise to keep."""
    first, *parts = path.split(".")
    if first != "torch" or "__" in path or path in TO_OVERRIDE:
        return False
    return path.startswith("torch.fx.experimental") or any(part.startswith("_") for part in parts)


def kernels_for_meta(tree: Tree) -> Iterator[Finding]:
    """Yield the lines that register a kernel for the meta device.

    Shapes of operators are computed on fake tensors, and such a kernel that reads data breaks PyTorch.
    """
    for source in tree.python(*PACKAGES, "conformance"):
        for node in source.nodes:
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "impl":
                continue
            if any(isinstance(argument, ast.Constant) and argument.value == "Meta" for argument in node.args):
                yield source.finding(node.lineno, "a kernel for the meta device: use torch.library.register_fake")


def comparisons_of_versions(tree: Tree) -> Iterator[Finding]:
    """Yield the comparisons of versions outside of the files that may compare them."""
    for source in tree.python(*PACKAGES):
        if not source.name.startswith(tuple(COMPARE_VERSIONS)):
            for node in source.nodes:
                if isinstance(node, ast.Compare) and _compares_versions(node):
                    yield source.finding(node.lineno, "a version is compared: give the behaviour a name")


def _compares_versions(node: ast.Compare) -> bool:
    """Return whether one side of a comparison by order is named a version, or made one."""
    sides = [node.left, *node.comparators]
    names = {getattr(part, "attr", getattr(part, "id", "")) for side in sides for part in ast.walk(side)}
    return any(isinstance(op, _ORDERED) for op in node.ops) and not names.isdisjoint({"Version", "version", "since"})


def names_of_the_newest_release(tree: Tree) -> Iterator[Finding]:
    """Yield the lines of code that name the newest release of tract and are not about it; pages are read too."""
    newest = newest_of_lines()[-1]
    name = re.compile(rf"(?<![\d.]){re.escape(newest)}(?!\.?\d)")
    code = ((source, enumerate(source.text.splitlines(), 1)) for source in tree.python(*CODE))
    for source, lines in (*code, *((page, _typed_lines(page)) for page in tree.pages())):
        if not source.name.startswith(tuple(NAME_THE_NEWEST)):
            for number, line in lines:
                if name.search(line):
                    yield source.finding(number, f"{newest} is named: take it from `newest_of_lines`, or name its line")


def _typed_lines(page: Source) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a page that a reader types: in blocks, but not in output."""
    fence = ""
    for number, line in enumerate(page.text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fence = "" if fence else line.strip()
        elif fence and not fence.startswith(("```text", "```log")):
            yield number, line
