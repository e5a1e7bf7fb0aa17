"""How many statements of the documents hold as written, and how many snippets run by the import alone."""

from __future__ import annotations

import ast
import csv
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
STATEMENTS = 214
"""Statements of the documents; `items.tsv` lists them in the order of the documents."""
LEAST_STATEMENTS = 190
SNIPPETS = {*range(1, 50), 51, 52}
LEAST_SNIPPETS = 42
TESTED_WITH = {11: 10, 12: 10, 14: 13, 15: 13, 16: 13, 17: 13, 18: 13, 19: 13, 20: 13}
"""Snippet -> the one whose test it shares."""


class Item(NamedTuple):
    """A statement of a document, and the test that shows whether it holds."""

    document: str
    item: str
    test: str

    @property
    def holds(self) -> bool:
        return not self.test.endswith("_differs")


@cache
def items() -> list[Item]:
    with (HERE / "items.tsv").open(encoding="utf-8", newline="") as file:
        return [Item(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


@cache
def functions(stem: str) -> set[str]:
    tree = ast.parse((HERE / f"test_{stem}.py").read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_statement_is_listed_once() -> None:
    assert len(items()) == len({(one.document, one.item) for one in items()}) == STATEMENTS
    assert [name for name, _ in groupby(one.document for one in items())] == ["000", "001", "002", "003", "004", "card"]


def test_each_statement_has_a_test() -> None:
    missing = []
    for one in items():
        stem, _, name = one.test.partition("::")
        missing += [] if name in functions(stem) else [one]
    assert missing == []


def test_most_statements_hold_as_written() -> None:
    differing = [one for one in items() if not one.holds]
    assert len(items()) - len(differing) >= LEAST_STATEMENTS, "\n".join(map(str, differing))


def test_each_difference_is_a_statement() -> None:
    listed = {one.test for one in items()}
    stems = sorted({one.test.partition("::")[0] for one in items()})
    assert [
        f"{s}::{n}" for s in stems for n in functions(s) if n.endswith("_differs") and f"{s}::{n}" not in listed
    ] == []


def test_most_snippets_run_by_the_import_alone() -> None:
    names = functions("snippets_names") | functions("snippets_exports")
    tests = [name.split("_") for name in names if name.startswith("test_") and name.split("_")[1].isdigit()]
    tested = {int(parts[1]) for parts in tests}
    differing = {int(parts[1]) for parts in tests if parts[-1] == "differs"}
    assert {TESTED_WITH.get(number, number) for number in SNIPPETS} == tested
    assert len(SNIPPETS - differing) >= LEAST_SNIPPETS, differing
