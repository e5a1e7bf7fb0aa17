"""Small files, folders with few of them, and `__all__` only where it says more than underscores do."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.lint.tree import CODE, Finding, Source, Tree

MOST_LINES = 400
MOST_FILES = 15
FAMILIES = {
    "t2n_core/op/aten": "one file for each family of operators",
    "tests/contract/cases": "the cases of the same families",
}
"""Folders that may hold more files."""


def small_files(tree: Tree) -> Iterator[Finding]:
    """Yield the files of code with too many lines."""
    for source in tree.python(*CODE):
        if (count := len(source.text.splitlines())) > MOST_LINES:
            yield source.finding(MOST_LINES + 1, f"{count} lines, at most {MOST_LINES}")


def small_folders(tree: Tree) -> Iterator[Finding]:
    """Yield the folders of code, or of documentation, with too many files."""
    code = [path for folder in CODE for path in tree.files(folder, "*.py") if path.name != "__init__.py"]
    yield from _crowded([*code, *tree.files("t2n_core", "*.nnef"), *tree.files("docs", "*.md")])


def _crowded(paths: list[Path]) -> Iterator[Finding]:
    for folder, count in Counter(path.parent.as_posix() for path in paths).items():
        if count > MOST_FILES and folder not in FAMILIES:
            yield Finding(folder, 1, f"{count} files, at most {MOST_FILES}")


def lists_of_own_names(tree: Tree) -> Iterator[Finding]:
    """Yield each `__all__` of a module, but of a package, that lists only names which the module defines itself."""
    for source in tree.python(*CODE):
        if source.path.name != "__init__.py":
            yield from _lists_of_own_names(source)


def _lists_of_own_names(source: Source) -> Iterator[Finding]:
    lists = [
        node
        for node in source.tree.body
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets)
    ]
    imports = [node for node in source.nodes if isinstance(node, ast.ImportFrom | ast.Import)] if lists else []
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in lists:
        if imported.isdisjoint(ast.literal_eval(node.value)):
            yield source.finding(node.lineno, "`__all__` of own names alone: an underscore says what is private")
