"""The files of a package have an order in which each imports only files before it, annotations included.

import-linter compares folders, and so finds no circle within a layer.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from tools.lint.tree import PACKAGES, Finding, Source, Tree


def circles_of_imports(tree: Tree) -> Iterator[Finding]:
    """Yield one circle of imports for each package that has one."""
    for package in PACKAGES:
        sources = {_module(source): source for source in tree.python(package)}
        if circle := _circle(sources):
            yield sources[circle[0]].finding(1, f"imports in a circle: {' -> '.join(circle)}")


def _module(source: Source) -> str:
    return source.name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _imports(source: Source, modules: Collection[str]) -> Iterator[str]:
    """Yield the modules that a file imports anywhere, also in functions and for annotations alone."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in names)


def _circle(sources: Mapping[str, Source]) -> list[str]:
    """Return modules of which each imports the next one, from a module back to itself; empty if there are none."""
    graph = {
        name: [module for module in _imports(source, sources) if module in sources] for name, source in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
