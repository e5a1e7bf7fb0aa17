"""What the tables say about releases of PyTorch is true of the installed one."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.version import Version

from t2n_core.op.registry import load_default
from t2n_core.torch_graph.compat import operators, private
from t2n_core.torch_graph.compat.patches import replaced
from t2n_core.torch_graph.compat.releases import TESTED, untested_note
from t2n_core.torch_graph.simplify import complex_pairs, decompositions

ROOT = Path(__file__).parents[4]


def patched_names() -> list[str]:
    """Return the dotted paths that the package replaces while it captures."""
    return sorted(
        argument.value
        for path in (ROOT / "t2n_core").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "replaced"
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant)
    )


def test_the_installed_release_is_a_tested_one() -> None:
    assert untested_note(torch.__version__) == ""


@pytest.mark.parametrize("change", operators.CHANGES, ids=lambda change: change.key)
def test_a_changed_operator_is_there_or_not_as_the_table_says(change: operators.Change) -> None:
    assert bool(operators.find_overloads(change.key)) == change.is_in(torch.__version__)
    assert {change.is_in(release) for release in TESTED} == {True, False}
    assert not change.instead or operators.find_overloads(change.instead)


def test_every_operator_with_a_rule_or_a_decomposition_is_there() -> None:
    """An operator that is in no supported release raises RegistryError when its table is loaded."""
    assert all(operators.find_overloads(rule.key) for rule in load_default() if rule.key.startswith("aten::"))
    assert list(decompositions.all_decompositions())
    assert list(complex_pairs.known_overloads())


def test_private_names_are_there() -> None:
    names = [*private.PRIVATE, *private.MODULES]
    assert [name for name in names if getattr(private, name, None) is None] == []


@pytest.mark.parametrize("path", patched_names())
def test_a_replaced_function_is_there(path: str) -> None:
    seen = []
    with replaced(path, lambda plain: seen.append(plain) or plain):
        pass
    assert len(seen) == 1


def test_the_declared_range_is_what_was_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (torch_line,) = [line for line in project["optional-dependencies"]["torch"] if line.startswith("torch>")]
    specifier = Requirement(torch_line).specifier
    assert all(specifier.contains(release) for release in TESTED)
    major, minor = Version(TESTED[-1]).release[:2]
    assert not specifier.contains(f"{major}.{minor + 1}.0")
    lowest = re.search(r"^torch==(\S+)$", (ROOT / "constraints-lowest.txt").read_text("utf-8"), re.MULTILINE)
    assert lowest is not None
    assert lowest[1] == TESTED[0]
