"""Units on workers that fail, die and come back: each is judged once or lost by its name."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import msgspec
import pytest

from pytest_t2n.cli.judging.spread import Spread
from pytest_t2n.cli.judging.unit import JudgedUnit, Unit
from t2n_core.errors import T2NError

Behave = Callable[[str, int], BaseException | None]


class Hopeless(Exception):  # noqa: N818
    """An error of a unit that was tried elsewhere already."""


class Desk(Executor):
    """Judges at once, but all units that are out end with the first that breaks it."""

    def __init__(self, behave: Behave, tries: dict[str, int], log: list[str]) -> None:
        self._behave, self._tries, self._log = behave, tries, log
        self._out: list[tuple[Future[bytes], str]] = []
        self.broken = False

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        if self.broken:
            raise BrokenProcessPool("broken")
        case = given[0]
        self._tries[case] = self._tries.get(case, 0) + 1
        future: Future[bytes] = Future()
        self._out.append((future, case))
        if len(self._out) == 3 or case.startswith("alone"):
            self.flush()
        return future

    def flush(self) -> None:
        """End all units that are out."""
        faults = {case: self._behave(case, self._tries[case]) for _, case in self._out}
        self.broken = any(isinstance(fault, BrokenProcessPool) for fault in faults.values())
        for future, case in self._out:
            fault = BrokenProcessPool("broken") if self.broken else faults[case]
            self._log.append(f"{case} of {len(self._out)}")
            if fault is not None:
                future.set_exception(fault)
            else:
                future.set_result(msgspec.msgpack.encode(JudgedUnit([])))
        self._out.clear()


class Desks:
    """Workers whose units end in groups of three, or when nothing else is sent."""

    width = 2

    def __init__(self, behave: Behave) -> None:
        self._behave = behave
        self.tries: dict[str, int] = {}
        self.log: list[str] = []
        self.started = 0
        self.gone = False
        self._desk: Desk | None = None

    def executor(self) -> Executor:
        self.started += 1
        self._desk = Desk(self._behave, self.tries, self.log)
        return self._desk

    def tries_after(self, error: Exception) -> int:
        return 1 if isinstance(error, Hopeless) else 3

    def check(self) -> None:
        if self.gone:
            raise T2NError("gone")

    def submit(self, executor: Executor, unit: Unit) -> Future[bytes]:
        return executor.submit(print, unit.case)

    def idle(self) -> bool:
        """End what is out; asked at each look."""
        if self._desk is not None and not self._desk.broken:
            self._desk.flush()
        return False


def run(behave: Behave, cases: list[str]) -> tuple[Desks, list[str], dict[str, str]]:
    desks, judged_cases, lost = Desks(behave), [], {}
    units = [Unit(case, [], "", 1.0, 1) for case in cases]
    spread = Spread(
        desks,
        units,
        lambda unit, result: judged_cases.append(unit.case),
        lambda unit, why: lost.update({unit.case: why}),
    )
    spread.run(desks.idle)
    return desks, judged_cases, lost


def test_each_unit_is_judged_once() -> None:
    desks, judged_cases, lost = run(lambda case, tries: None, [f"n{n}" for n in range(10)])
    assert (sorted(judged_cases), lost) == ([f"n{n}" for n in range(10)], {})
    assert set(desks.tries.values()) == {1}


def test_a_unit_that_kills_its_worker_is_the_only_one_that_is_lost() -> None:
    def behave(case: str, tries: int) -> BaseException | None:
        return BrokenProcessPool("x") if case == "n4" else None

    desks, judged_cases, lost = run(behave, [f"n{n}" for n in range(10)])
    assert sorted(judged_cases) == [f"n{n}" for n in range(10) if n != 4]
    assert lost == {"n4": "tried 3 times: the process that judged it died"}
    assert desks.tries["n4"] == 4, "once with others, then alone"
    assert max(count for case, count in desks.tries.items() if case != "n4") == 2
    assert desks.log.count("n4 of 1") == 3


def test_a_kill_from_outside_costs_a_try_and_no_unit() -> None:
    killed = []

    def behave(case: str, tries: int) -> BaseException | None:
        if case in ("n2", "n7") and case not in killed:
            killed.append(case)
            return BrokenProcessPool("x")
        return None

    desks, judged_cases, lost = run(behave, [f"n{n}" for n in range(10)])
    assert (sorted(judged_cases), lost, desks.started) == ([f"n{n}" for n in range(10)], {}, 3)


def test_errors_of_workers_are_tried_again_and_told_at_last() -> None:
    def behave(case: str, tries: int) -> BaseException | None:
        if case == "never":
            return OSError("no route to the store")
        if case == "known":
            return Hopeless("tried on 4 workers")
        return ValueError("once") if case == "again" and tries == 1 else None

    desks, judged_cases, lost = run(behave, ["a", "never", "again", "known", "b"])
    assert sorted(judged_cases) == ["a", "again", "b"]
    assert lost == {
        "never": "tried 3 times: OSError: no route to the store",
        "known": "tried 1 times: Hopeless: tried on 4 workers",
    }
    assert desks.tries == {"a": 1, "never": 3, "again": 2, "known": 1, "b": 1}


def test_nobody_left_ends_the_run() -> None:
    def behave(case: str, tries: int) -> BaseException | None:
        return OSError("closed")

    desks = Desks(behave)
    desks.gone = True
    spread = Spread(desks, [Unit("a", [], "", 1.0, 1)], lambda unit, result: None, lambda unit, why: None)
    with pytest.raises(T2NError, match="gone"):
        spread.run(desks.idle)


def test_a_stop_takes_no_more_results() -> None:
    judged_cases: list[str] = []
    desks = Desks(lambda case, tries: None)
    spread = Spread(
        desks, [Unit("a", [], "", 1.0, 1)], lambda unit, result: judged_cases.append(unit.case), lambda u, w: None
    )
    spread.run(lambda: True)
    assert judged_cases == []
