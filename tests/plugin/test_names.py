"""Names and choices without a session: case ids, version filters, plans, the header."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_t2n.collect.cells import Cell, case_id, decode_plan, encode_plan, guess_plan
from pytest_t2n.config.engines import SelectedEngine, engines_for, header_line, version_items


def tract(version: str, label: str = "", requested: str = "") -> SelectedEngine:
    kind = "wheel" if not label else "cli"
    return SelectedEngine("tract", version, label or version, {"kind": kind, "requested": requested or version})


KHRONOS = SelectedEngine("khronos", "1.0.5", "1.0.5")
ALL = [tract("0.21.13"), tract("0.21.19"), tract("0.22.4"), tract("0.23.9"), tract("0.23.9", "path-0.23.9"), KHRONOS]


@pytest.mark.parametrize(
    ("nodeid", "engine", "case"),
    [
        ("a.py::t[tract-0.21.19]", "tract-0.21.19", "a.py::t"),
        ("a.py::t[x-tract-0.21.19]", "tract-0.21.19", "a.py::t[x]"),
        ("a.py::t[khronos-x-khronos]", "khronos", "a.py::t[khronos-x]"),
        ("a.py::t[xtract-0.21.19]", "tract-0.21.19", "a.py::t[xtract-0.21.19]"),
        ("a.py::t[tract-0.21.19-late]", "tract-0.21.19", "a.py::t[late]"),
        ("a.py::t[x-tract-0.21.19-late]", "tract-0.21.19", "a.py::t[x-late]"),
        ("khronos.py::t", "khronos", "khronos.py::t"),
    ],
)
def test_case_ids(nodeid, engine, case):
    assert case_id(nodeid, engine) == case


@pytest.mark.parametrize(
    ("versions", "labels"),
    [
        ("0.21", ["0.21.13", "0.21.19"]),
        ("0.21.13", ["0.21.13"]),
        (">=0.21.14,<0.23", ["0.21.19", "0.22.4"]),
        ([">=0.22", "0.21.13"], ["0.21.13", "0.22.4", "0.23.9", "path-0.23.9"]),
        ("all-minors", ["0.21.19", "0.22.4", "0.23.9", "path-0.23.9"]),
        ("latest", ["0.23.9", "path-0.23.9"]),
        ("all", ["0.21.13", "0.21.19", "0.22.4", "0.23.9", "path-0.23.9"]),
        ("0.2", []),
    ],
)
def test_version_filters(versions, labels):
    found = engines_for(ALL, ("tract", "khronos"), version_items(versions))
    assert [engine.label for engine in found] == [*labels, "1.0.5"]


@pytest.mark.parametrize("versions", ["", "newest", "0.21,", ["0.21", ">>1"], []])
def test_bad_version_filters(versions):
    with pytest.raises(ValueError):  # noqa: PT011  the marker words it
        version_items(versions)


def test_engines_survive_the_way_to_a_worker():
    assert [SelectedEngine.from_dict(engine.to_dict()) for engine in ALL] == ALL


def test_ids_are_unique():
    assert len({engine.id for engine in ALL}) == len(ALL)


def test_a_guessed_plan_takes_the_engine_from_the_end():
    engines = [tract("0.21.1"), tract("0.21.19"), KHRONOS]
    ids = ["a::t[tract-0.21.19]", "a::t[tract-0.21.1]", "a::u[1-khronos]", "a::plain", "a::u[tract-0.21.19-x]"]
    assert guess_plan(ids, engines) == [
        Cell(ids[0], "a::t", engines[1]),
        Cell(ids[1], "a::t", engines[0]),
        Cell(ids[2], "a::u[1]", KHRONOS),
    ]


def test_a_plan_of_a_worker():
    cells = [Cell("a::t[khronos]", "a::t", KHRONOS), Cell("a::u[1-tract-0.22.4]", "a::u[1]", ALL[2])]
    collected = ["a::plain", "".join(["a::u[1-", "tract-0.22.4]"]), "a::t[khronos]"]
    found = decode_plan(encode_plan(cells), ALL, collected)
    assert found == cells
    assert found[1].nodeid is collected[1], "a text that pytest keeps is not kept twice"
    assert decode_plan(encode_plan(cells), ALL) == cells


def test_header():
    engines = [tract("0.21.19", requested="0.21"), tract("0.23.9"), KHRONOS]
    assert header_line(engines, Path("/c")) == "t2n: tract 0.21.19 (0.21), 0.23.9; khronos 1.0.5; cache /c"
    assert header_line([KHRONOS], Path("/c")) == "t2n: khronos 1.0.5"
