"""The tables of options and of moves in the documentation, written from the options and the table themselves.

python -m tools.option_table
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path

from _pytest.config.argparsing import Parser

import pytest_t2n.plugin
from conformance.lab.pages.tables import table
from pytest_t2n.cli.migrate.table import moves
from t2n_core.export.options import ExportOptions, help_of, marker_options
from t2n_core.inference_target import InferenceTarget, KhronosNNEF, TractNNEF

ROOT = Path(__file__).parents[1]
COMMAND_LINE = ROOT / "docs" / "reference" / "command-line.md"
OPTIONS = ROOT / "docs" / "reference" / "options.md"
MOVING = ROOT / "docs" / "how-to" / "moving" / "from-torch-to-nnef.md"
TESTS = ROOT / "tests" / "contract"

PROOFS: Mapping[tuple[type, str], str] = {
    (TractNNEF, "pulse"): "test_a_stream_gives_the_numbers_of_the_whole",
    (TractNNEF, "engine"): "test_engine_and_offline",
    (TractNNEF, "offline"): "test_engine_and_offline",
    (KhronosNNEF, "version"): "test_version_of_khronos",
    (KhronosNNEF, "check_io"): "test_check_io_of_khronos",
    (KhronosNNEF, "check_io_tolerance"): "test_check_io_of_khronos",
    (KhronosNNEF, "dynamic_axes"): "test_khronos_has_no_dynamic_axes",
}
"""Option of a target -> the test that proves it, where that is not called `test_` and the option."""


def session_table() -> str:
    """Return a line of Markdown for each option of the plugin: whether it is an ini option too, and its help."""
    parser = Parser(_ispytest=True)
    pytest_t2n.plugin.pytest_addoption(parser)
    rows = []
    for option in parser.getgroup("t2n").options:
        (name,), attributes = option.names(), option.attrs()
        twin = "yes" if attributes["dest"] in parser._inidict else ""
        value = f"={attributes['metavar']}" if attributes.get("metavar") else ""
        rows.append((f"`{name}{value}`", twin, attributes["help"]))
    return table(("option", "ini", "meaning"), rows)


def export_table() -> str:
    """Return a line for each option of an export, with its default and its name in the marker where that differs."""
    in_marker = {option.name: name for name, option in marker_options().items()}
    rows = []
    for option in fields(ExportOptions):
        assert option.default is not MISSING
        marker = in_marker.get(option.name)
        other = f"; `{marker}` in the marker" if marker else "; not in the marker"
        meaning = help_of(option) + ("" if marker == option.name else other)
        rows.append((f"`{option.name}`", f"`{option.default!r}`", meaning))
    return table(("option", "default", "meaning"), rows)


def target_table(target: type[InferenceTarget]) -> str:
    """Return a line for each option of a target, with its description in the class.

    Raises:
        LookupError: an option has no line in the docstring of its class, or no test of its name.
    """
    described = {**_arguments(InferenceTarget), **_arguments(target)}
    for name in inspect.signature(target).parameters:
        if name not in described:
            raise LookupError(f"`{name}` has no line under Args in the docstring of {target.__name__}")
    return table(("option", "meaning"), [(f"`{name}`", described[name]) for name in proofs_of(target)])


def proofs_of(target: type[InferenceTarget]) -> dict[str, str]:
    """Return for each option of a target the test that proves it, as `FILE::TEST`.

    Raises:
        LookupError: an option has no test of its name.
    """
    places = {
        name: path.relative_to(ROOT).as_posix()
        for path in sorted(TESTS.rglob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    proofs = {}
    for name in inspect.signature(target).parameters:
        test = PROOFS.get((target, name), f"test_{name}")
        if test not in places:
            raise LookupError(f"no {test} in {TESTS.relative_to(ROOT)} proves the option `{name}` of {target.__name__}")
        proofs[name] = f"{places[test]}::{test}"
    return proofs


def _arguments(target: type[InferenceTarget]) -> dict[str, str]:
    """Return the section `Args` of a class's docstring: name -> description, as one line."""
    text = inspect.getdoc(target) or ""
    section = re.split(r"\n\n(?=\w+:\n)", text.partition("Args:\n")[2])[0]
    matches = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in matches}


def moves_table(*kinds: str) -> str:
    """Return a line for each name of torch-to-nnef of some kinds, with what to write instead."""
    rows = []
    for move in (candidate for candidate in moves() if candidate.kind in kinds):
        old = [*move.old.split(), *(f"{module}.{move.old.rpartition('.')[2]}" for module in move.also.split())]
        spelled = [move.old] if move.kind in ("keyword", "command") else old
        new = "the same" if move.change == "same" else f"`{move.new}`" if move.new else ""
        rows.append((", ".join(f"`{name}`" for name in spelled), new, move.note))
    return table(("torch-to-nnef", "here", "to do"), rows)


def pages() -> dict[Path, str]:
    """Return each page with up-to-date tables."""
    tables = {
        COMMAND_LINE: {"options": session_table()},
        OPTIONS: {
            "options of an export": export_table(),
            "options of TractNNEF": target_table(TractNNEF),
            "options of KhronosNNEF": target_table(KhronosNNEF),
        },
        MOVING: {
            "names": moves_table("name"),
            "arguments": moves_table("keyword", "attribute"),
            "commands": moves_table("command"),
            "options of language models": moves_table("option"),
        },
    }
    return {path: _filled(path.read_text("utf-8"), of_page) for path, of_page in tables.items()}


def _filled(text: str, tables: Mapping[str, str]) -> str:
    """Return a page with each table between its two comments."""
    for name, written in tables.items():
        begin, end = f"<!-- {name} -->\n\n", f"<!-- end of {name} -->"
        before, marker, rest = text.partition(begin)
        if not marker:
            raise ValueError(f"there is no comment <!-- {name} -->")
        text = f"{before}{begin}{written}\n\n{end}" + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
