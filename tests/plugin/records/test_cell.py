"""Cells and engines as values: case ids, plans, the way to a worker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_t2n.records.cell import Cell, SelectedEngine, decode_plan, encode_plan, guess_plan
from pytest_t2n.records.nodeids import case_id
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.run_line import engine_line
from tests.plugin.config.test_engines import ALL, KHRONOS, tract


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
        ("a.py::t[torch-onnx-tract-0.21.19]", "torch-onnx-tract-0.21.19", "a.py::t"),
        ("a.py::t[x-torch-onnx-tract-0.21.19]", "torch-onnx-tract-0.21.19", "a.py::t[x]"),
    ],
)
def test_case_ids(nodeid, engine, case):
    assert case_id(nodeid, engine) == case


def exported(engine: SelectedEngine, exporter: str, version: str = "") -> SelectedEngine:
    return replace(engine, exporter=exporter, exporter_version=version)


OTHERS = [exported(engine, name, "2.13.0") for engine in ALL for name in ("torch-onnx", "onnx")]


def test_engines_survive_the_way_to_a_worker():
    engines = [*ALL, *OTHERS]
    assert [SelectedEngine.from_dict(engine.to_dict()) for engine in engines] == engines


def test_ids_are_unique():
    engines = [*ALL, *OTHERS]
    assert len({engine.id for engine in engines}) == len(engines)
    assert len({engine.title for engine in engines}) == len(engines)


@pytest.mark.parametrize(
    ("engine", "ends", "title"),
    [
        (tract("0.21.19"), "tract-0.21.19", "tract 0.21.19"),
        (exported(tract("0.21.19"), "torch-onnx"), "torch-onnx-tract-0.21.19", "torch-onnx tract 0.21.19"),
        (exported(KHRONOS, "nnef-tools"), "nnef-tools-khronos", "nnef-tools khronos 1.0.5"),
    ],
)
def test_another_exporter_stands_before_the_engine(engine, ends, title):
    assert (engine.id, engine.title) == (ends, title)
    line = engine_line(engine, this_platform())
    assert (line.id, line.title, line.qualified_target) == (ends, title, engine.qualified_target)


def test_a_guessed_plan_takes_the_engine_from_the_end():
    engines = [tract("0.21.1"), tract("0.21.19"), KHRONOS]
    ids = ["a::t[tract-0.21.19]", "a::t[tract-0.21.1]", "a::u[1-khronos]", "a::plain", "a::u[tract-0.21.19-x]"]
    assert guess_plan(ids, engines) == [
        Cell(ids[0], "a::t", engines[1]),
        Cell(ids[1], "a::t", engines[0]),
        Cell(ids[2], "a::u[1]", KHRONOS),
    ]


def test_a_guessed_plan_takes_the_longest_engine():
    engines = [tract("0.21.19"), exported(tract("0.21.19"), "onnx"), exported(tract("0.21.19"), "torch-onnx")]
    ids = [f"a::t[{name}tract-0.21.19]" for name in ("x-", "x-onnx-", "x-torch-onnx-", "torch-")]
    plan = guess_plan(ids, engines)
    assert [(cell.case, cell.engine.exporter) for cell in plan] == [
        ("a::t[x]", ""),
        ("a::t[x]", "onnx"),
        ("a::t[x]", "torch-onnx"),
        ("a::t[torch]", ""),
    ]


def test_a_plan_of_a_worker():
    cells = [Cell("a::t[khronos]", "a::t", KHRONOS), Cell("a::u[1-tract-0.22.4]", "a::u[1]", ALL[2])]
    collected = ["a::plain", "".join(["a::u[1-", "tract-0.22.4]"]), "a::t[khronos]"]
    plan = decode_plan(encode_plan(cells), ALL, collected)
    assert plan == cells
    assert plan[1].nodeid is collected[1], "a text that pytest keeps is not kept twice"
    assert decode_plan(encode_plan(cells), ALL) == cells
