"""Mutants of definitions: each is one change of the code, and only what is not equivalent counts."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from conformance.lab.plant.definitions.__main__ import table_of
from conformance.lab.plant.definitions.equivalents import EQUIVALENT
from conformance.lab.plant.definitions.mutate import Mutant, mutants_of
from conformance.lab.plant.definitions.run import ENGINE_TESTS, PACKAGE, TESTS, MutantSession, Verdict, functions_of


def scaled(x: Any, axis: int, factor: int = 2) -> Any:
    """Return -1 as text in no mutant."""
    if x.ndim < 1:
        raise ValueError(f"{axis - 1}")
    return np.sum(x, axis=axis, keepdims=True) * factor - 1


def changes() -> set[str]:
    return {f"{mutant.kind}: {mutant.before} -> {mutant.after}" for mutant in mutants_of("here", scaled)}


def test_signs_axes_bounds_and_constants_change() -> None:
    total = "np.sum(x, axis=axis, keepdims=True)"
    assert {
        "comparison: x.ndim < 1 -> x.ndim <= 1",
        "off by one: x.ndim < 1 -> x.ndim < 2",
        "off by one: 2 -> 3",
        "axis: axis=axis -> axis=axis - 1",
        "function: np.sum -> np.prod",
        f"sign: {total} * factor -> {total} / factor",
        f"sign: {total} * factor - 1 -> {total} * factor + 1",
    } <= changes()


def test_errors_and_texts_do_not_change() -> None:
    assert not any("axis - 1}" in change or "Return" in change for change in changes())


def test_a_planted_mutant_is_what_runs() -> None:
    copy = types.FunctionType(scaled.__code__, globals(), "scaled", scaled.__defaults__)
    (mutant,) = (candidate for candidate in mutants_of("here", scaled) if candidate.after.endswith("+ 1"))
    before = copy(np.ones(3), 0)
    mutant.plant(copy)
    assert (before.tolist(), copy(np.ones(3), 0).tolist()) == ([5.0], [7.0])
    assert scaled(np.ones(3), 0).tolist() == [5.0]


class Session:
    items = tuple(types.SimpleNamespace(nodeid=f"{tests}/test_x.py") for tests in (TESTS[0], ENGINE_TESTS[0]))


@pytest.mark.parametrize(("works", "rounds"), [(True, [TESTS[0], ENGINE_TESTS[0]]), (False, [TESTS[0]])])
def test_engines_run_only_for_what_all_other_tests_let_pass(
    works: bool, rounds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = MutantSession(lambda key: key.endswith(("elementary:sine", "elementary:cosine")), 1)
    seen: list[str] = []

    def callers(items: list[Any], functions: dict[str, Any]) -> dict[str, list[Any]]:
        seen.extend(item.nodeid.removesuffix("/test_x.py") for item in items)
        return {key: [] if works else items for key in functions}  # what is no test fails

    monkeypatch.setattr(session, "_callers", callers)
    assert session.pytest_runtestloop(Session())  # type: ignore[arg-type]
    assert seen == rounds
    assert [verdict.is_right for verdict in session.verdicts.values()] == [not works] * 2


def test_equivalent_mutants_exist_and_are_not_counted() -> None:
    every: dict[str, Mutant] = {}
    for key, function in functions_of().items():
        module = key.partition(":")[0].removeprefix(f"{PACKAGE}.")
        every.update((mutant.name, mutant) for mutant in mutants_of(module, function))
    assert EQUIVALENT.keys() <= every.keys()
    assert all(EQUIVALENT.values())
    equal, other = (every[name] for name in (next(iter(EQUIVALENT)), "standard.elementary.sine: np.sin -> np.cos"))
    table = table_of([Verdict.of(equal, False, 1), Verdict.of(other, False, 1), Verdict.of(other, True, 1)])
    assert table.splitlines()[-1] == "| all | 3 | 1 | 1 | 50.0% |"
