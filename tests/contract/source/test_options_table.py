"""The tables of options in the documentation are those of the code, and every test that they name exists."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2n_core import KhronosNNEF, TractNNEF
from tools.option_table import pages, target_table

ROOT = Path(__file__).parents[3]


def rows(target: str) -> Iterator[tuple[str, str]]:
    """(option, test) of each line of a target's table."""
    text = (ROOT / "docs" / "reference" / "options.md").read_text("utf-8")
    section = text.partition(f"## {target}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        found = re.fullmatch(r"\| `(\w+)` \| .+ \| `(tests/[^`]+)` \|", line)
        if found:
            yield found[1], found[2]


@pytest.mark.parametrize("target", [TractNNEF, KhronosNNEF])
def test_the_table_is_complete(target: type) -> None:
    documented = [option for option, _ in rows(target.__name__)]
    assert documented == list(dict.fromkeys(documented))
    assert set(documented) == set(inspect.signature(target).parameters)


@pytest.mark.parametrize("target", [TractNNEF, KhronosNNEF])
def test_every_named_test_exists_and_is_about_its_option(target: type) -> None:
    for option, name in rows(target.__name__):
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
        assert found, f"{name} does not exist"
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
