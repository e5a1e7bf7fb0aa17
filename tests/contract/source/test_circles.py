"""The files of a package have an order in which each imports only files before it, annotations included.

import-linter compares folders, and so finds no circle within a layer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def modules_of(root: Path, package: str) -> dict[str, str]:
    """Return the sources of a package by the names of its modules."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path.read_text("utf-8")
    return found


def imports_of(source: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the modules that a source imports anywhere, also in functions and for annotations alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in names)


def circle_in(modules: Mapping[str, str]) -> list[str]:
    """Return modules of which each imports the next one, from a module back to itself; empty if there are none."""
    graph = {name: [one for one in imports_of(source, modules) if one in modules] for name, source in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(reversed(found.args[1]))
    return []


@pytest.mark.parametrize("package", ["t2n_core", "pytest_t2n"])
def test_files_import_each_other_in_no_circle(package: str) -> None:
    assert circle_in(modules_of(ROOT, package)) == []


@pytest.mark.parametrize(
    "back",
    [
        "from a.b import thing",
        "from a import b",
        "import a.b",
        "if TYPE_CHECKING:\n    from a.b import Thing",
        "def late():\n    from a.b import thing",
    ],
)
def test_each_form_of_an_import_closes_a_circle(back: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name, source in {"__init__": "", "b": "from a.c import other", "c": back}.items():
        (tmp_path / "a" / f"{name}.py").write_text(source)
    modules = modules_of(tmp_path, "a")
    assert set(modules) == {"a", "a.b", "a.c"}
    assert set(circle_in(modules)) == {"a.b", "a.c"}
    assert circle_in({**modules, "a.c": ""}) == []
