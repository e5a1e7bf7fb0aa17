"""The files that the checks read, each parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("t2n_core", "pytest_t2n")
CODE = (*PACKAGES, "conformance", "tools", "tests")


class Finding(NamedTuple):
    """A place that breaks a rule."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Source:
    """A file of text below the root of the repository."""

    path: Path
    name: str
    """The path from the root, with slashes."""

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of a file of Python."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the syntax tree."""
        return list(ast.walk(self.tree))

    def finding(self, line: int, message: str) -> Finding:
        return Finding(self.name, line, message)


class Tree:
    """The files of a repository."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sources: dict[Path, Source] = {}

    def python(self, *folders: str) -> Iterator[Source]:
        """Yield the Python files of folders, sorted by path."""
        for folder in folders:
            yield from map(self._source, sorted((self._root / folder).rglob("*.py")))

    def pages(self) -> Iterator[Source]:
        """Yield the pages of Markdown: at the top, of the forge, and of the documentation."""
        folders = [self._root / ".github", self._root / "docs"]
        yield from map(
            self._source, [*self._root.glob("*.md"), *(p for folder in folders for p in folder.rglob("*.md"))]
        )

    def files(self, folder: str, pattern: str) -> Iterator[Path]:
        """Yield the paths from the root of the files in a folder that match a pattern, at any depth."""
        yield from (path.relative_to(self._root) for path in sorted((self._root / folder).rglob(pattern)))

    def _source(self, path: Path) -> Source:
        if path not in self._sources:
            self._sources[path] = Source(path, path.relative_to(self._root).as_posix())
        return self._sources[path]
