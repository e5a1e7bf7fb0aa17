"""No file has more than 400 lines, no folder more than 15 files of code: what belongs together is found at a glance."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("t2n_core", "pytest_t2n", "conformance", "tests", "tools")
MOST_LINES = 400
MOST_FILES = 15
FAMILIES = {
    "t2n_core/op/aten": "one file for each family of operators",
    "tests/contract/cases": "the cases of the same families",
}


def sources() -> Iterator[Path]:
    """Yield the path of every file of code."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_is_small(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES


def test_a_folder_holds_few_files() -> None:
    paths = [path for path in (*sources(), *(ROOT / "t2n_core").rglob("*.nnef")) if path.name != "__init__.py"]
    counted = Counter(path.parent.relative_to(ROOT).as_posix() for path in paths)
    assert {name for name, count in counted.items() if count > MOST_FILES} == set(FAMILIES)


def test_a_folder_of_documentation_holds_few_pages() -> None:
    counted = Counter(path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    assert not {name for name, count in counted.items() if count > MOST_FILES}


def repeats_its_names(source: str) -> bool:
    """Return whether a module has an `__all__` of nothing but names that it defines itself."""
    tree = ast.parse(source)
    listed = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node.targets[0])
    ]
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    others = {alias.asname or alias.name for node in imported for alias in node.names}
    return any(others.isdisjoint(ast.literal_eval(value)) for value in listed)


@pytest.mark.parametrize(
    ("source", "repeats"),
    [
        ("def f(): ...\n__all__ = ['f']", True),
        ("from a import f\n__all__ = ['f']", False),
        ("from a import g\ndef f(): ...", False),
    ],
)
def test_lists_of_own_names_are_found(source: str, repeats: bool) -> None:
    assert repeats_its_names(source) == repeats


def test_a_module_lists_names_only_to_export_those_of_others() -> None:
    """An underscore says already what is private; a package says in `__init__` what it offers."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in sources() if path.name != "__init__.py"}
    found = [name for name, path in paths.items() if repeats_its_names(path.read_text("utf-8"))]
    assert found == []
