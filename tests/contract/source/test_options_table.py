"""The tables of options in the documentation are those of the code, and a test proves each option of a target."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from t2n_core import KhronosNNEF, TractNNEF
from tools.option_table import pages, proofs_of, target_table

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("target", [TractNNEF, KhronosNNEF])
def test_the_table_is_complete(target: type) -> None:
    text = (ROOT / "docs" / "reference" / "options.md").read_text("utf-8")
    section = text.partition(f"## {target.__name__}\n")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \| .+ \|$", section, re.MULTILINE)
    assert documented == list(dict.fromkeys(documented))
    assert set(documented) == set(inspect.signature(target).parameters)


@pytest.mark.parametrize("target", [TractNNEF, KhronosNNEF])
def test_the_test_of_an_option_is_about_it(target: type) -> None:
    for option, name in proofs_of(target).items():
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
        source = ast.unparse(found[0])
        assert option in source or f'"{option}"' in source or option == "version", f"{name} does not use {option}"


@pytest.mark.parametrize(("path", "text"), pages().items(), ids=lambda one: getattr(one, "stem", ""))
def test_the_tables_are_up_to_date(path: Path, text: str) -> None:
    assert path.read_text("utf-8") == text, "python -m tools.option_table writes it anew"


class Undescribed(TractNNEF):
    """A target with an option that nobody describes."""

    def __init__(self, version: str = "latest", *, loudness: int = 1) -> None:
        super().__init__(version)


class Unproven(TractNNEF):
    """A target with an option that no test proves.

    Args:
        loudness: how loud.
    """

    def __init__(self, version: str = "latest", *, loudness: int = 1) -> None:
        super().__init__(version)


@pytest.mark.parametrize(
    ("target", "problem"),
    [(Undescribed, "`loudness` has no line under Args"), (Unproven, "no test_loudness in tests/contract proves")],
)
def test_an_option_without_a_description_or_a_test_is_named(target: type[TractNNEF], problem: str) -> None:
    with pytest.raises(LookupError, match=problem):
        target_table(target)
