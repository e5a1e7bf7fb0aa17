"""Pages and indices of the documentation are those of the tables, and name files that exist."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
from packaging.version import Version

from t2n_core import KhronosNNEF, TractNNEF
from t2n_core.nnef.releases import ALL_RELEASES, Releases
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from t2n_core.nnef.tract.quirks.table import QUIRKS
from t2n_core.nnef.tract.traits import TractTraits
from t2n_core.op.registry import load_default
from tools.build_spec_tables import known_releases
from tools.errata_table import PAGE, behaviour_table, hazard_table, page, quirk_table, releases_text
from tools.operator_index import main, rows
from tools.option_table import pages, proofs_of, target_table


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tools.errata_table writes it anew"


def test_each_entry_has_a_line() -> None:
    tables = {hazard_table(): HAZARDS, quirk_table(): QUIRKS, behaviour_table(): fields(TractTraits)}
    for table, entries in tables.items():
        head, _, *rows = table.splitlines()
        assert len(rows) == len(entries)
        assert all(row.replace(r"\|", "").count("|") == head.count("|") for row in rows)


def test_the_ends_of_ranges_are_releases() -> None:
    ends = {end for entry in (*HAZARDS, *QUIRKS) for range in entry.releases for end in (range.since, range.before)}
    assert ends - {None} <= {Version(release) for release in known_releases()}


def test_behaviours_that_the_page_names_exist() -> None:
    text = PAGE.read_text("utf-8").partition("| behaviour | written instead |")[2].partition("##")[0]
    names = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert names
    assert names <= {field.name for field in fields(TractTraits)}


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([ALL_RELEASES], "all"),
        ([Releases.of(None, "0.20")], "until 0.19.16"),
        ([Releases.of("0.21", None)], "from 0.21.0 on"),
        ([Releases.of("0.21.6", "0.23.0")], "0.21.6 to 0.22.4"),
        ([Releases.of("0.21.6", "0.21.7")], "0.21.6"),
        ([Releases.of(None, "0.21.6"), Releases.of("0.23.5", None)], "until 0.21.5, and from 0.23.5 on"),
    ],
)
def test_ranges_in_words(ranges: list[Releases], text: str) -> None:
    assert releases_text(*ranges) == text


ROOT = Path(__file__).parents[3]
ROWS = re.findall(
    r"^\| ([^|`]+) \|.*\| ([^|]*) \|$", (ROOT / "docs/explanation/glossary.md").read_text("utf-8"), re.MULTILINE
)


def test_each_term_stands_once() -> None:
    terms = [term for terms, _ in ROWS for term in terms.split(", ") if term not in ("term", "---")]
    assert len(terms) > 30
    assert sorted(set(terms)) == sorted(terms)


def test_files_and_folders_exist() -> None:
    paths = [path for _, code in ROWS for path in re.findall(r"`([\w.]+/[\w./]+)`", code)]
    assert len(paths) > 20
    missing = [path for path in paths if not any((ROOT / base / path).exists() for base in ("", "t2n_core"))]
    assert not missing


def test_every_rule_has_a_row_and_every_row_a_line_of_code() -> None:
    index_rows = list(rows())
    assert sorted(key for key, _, _ in index_rows) == sorted(rule.key for rule in load_default())
    for key, location, function in index_rows:
        path, _, line = location.rpartition(":")
        lines = (ROOT / path).read_text("utf-8").splitlines()[int(line) - 1 :]
        name = function.split(" (")[0].rpartition(".")[2]
        header = "\n".join(lines[:30])
        assert f"def {name}(" in header or "lambda" in header, f"{key}: no {function} at {location}"


def test_rows_are_chosen_by_words_and_say_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid_sampler_2d", "aten::hardshrink"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["aten::grid_sampler_2d", "aten::hardshrink"]
    assert printed[0].endswith("grid_sampler (tract since 0.23.3)")
    assert "t2n_core/op/aten/activation.py:" in printed[1]
    assert main(["no::such"]) == 1


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
        definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
        source = ast.unparse(definitions[0])
        assert option in source or f'"{option}"' in source or option == "version", f"{name} does not use {option}"


@pytest.mark.parametrize(("path", "text"), pages().items(), ids=lambda value: getattr(value, "stem", ""))
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
