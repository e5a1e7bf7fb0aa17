"""Problems in the records of a killed session are reported; what a kill may cause is not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from conformance.lab.plant.kills.__main__ import problems_of, problems_of_resumed
from conformance.lab.plant.kills.session import CELLS, WRONG, Killed
from pytest_t2n.records.file import encode, write_records
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, PlanLine, Record
from tests.releases import NEWEST

TITLE = f"tract-{NEWEST}"


def nodeid(number: int) -> str:
    return f"test_nets.py::test_net[{number}-{TITLE}]"


def cell(number: int, status: str = "") -> CellLine:
    outcome = status or ("mismatch" if number == WRONG else "pass")
    return CellLine(SCHEMA, nodeid(number), f"test_net[{number}]", "tract", NEWEST, NEWEST, outcome, "compare")


PLAN = PlanLine(SCHEMA, cells={TITLE: [nodeid(number) for number in range(CELLS)]})
ALL: list[Record] = [PLAN, *map(cell, range(CELLS)), EndLine(SCHEMA, "2026-01-01T00:00:00+00:00")]


@pytest.fixture
def killed(tmp_path: Path) -> Killed:
    (tmp_path / "site").mkdir()
    (tmp_path / "log.txt").write_text("")
    return Killed(tmp_path, "controller", signal.SIGKILL, True, 3, -9, ())


def test_a_part_of_the_records_is_all_right(killed: Killed) -> None:
    write_records(killed.file, ALL[:7])
    with killed.file.open("a") as file:
        file.write(encode(cell(8))[:50])
    assert problems_of(killed) == []


def test_a_wrong_pass_is_a_problem(killed: Killed) -> None:
    write_records(killed.file, [PLAN, cell(WRONG, "pass")])
    assert problems_of(killed) == [f"{nodeid(WRONG)} is pass"]


def test_a_file_that_reads_as_whole_is_a_problem(killed: Killed) -> None:
    write_records(killed.file, [PlanLine(SCHEMA, cells={TITLE: [nodeid(0)]}), cell(0), ALL[-1]])
    assert problems_of(killed) == ["the file reads as whole"]


def test_a_process_and_a_success_are_problems(tmp_path: Path, killed: Killed) -> None:
    left = Killed(killed.folder, "engine", signal.SIGSTOP, True, 3, 0, ("python -m engine",))
    assert problems_of(left) == ["a process is left: python -m engine", "the session succeeded"]


def test_a_resumed_session_is_complete(killed: Killed) -> None:
    write_records(killed.file, ALL)
    assert problems_of_resumed(killed, 1) == []
    write_records(killed.file, ALL[:-2])
    problems = problems_of_resumed(killed, 0)
    assert problems[0] == "the resumed session ends with 0, though a cell is wrong"
    assert problems[1] == f"the resumed session is incomplete: {CELLS - 1} of {CELLS} cells"
