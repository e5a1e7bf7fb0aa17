"""Operators are counted in the engine's list of nodes, those of a body apart from those around it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from t2n_core.engine.protocol import DIED_LISTING, OPERATORS, OPERATORS_UNKNOWN, EngineReply
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.job import enter_stage
from t2n_core.engine.tract.operators import count_operators, list_operators, optimise_for_profile
from t2n_core.errors import EngineLoadError


def listed(*nodes: tuple[list[Any], int, str]) -> str:
    return json.dumps(
        {
            "nodes": [
                {"qualified_id": [outer, node_id], "op_name": name, "node_name": f"n{node_id}"}
                for outer, node_id, name in nodes
            ]
        }
    )


def test_operators_are_counted_without_inputs_and_constants() -> None:
    text = listed(([], 3, "OptMatMul"), ([], 0, "Source"), ([], 1, "Const"), ([], 2, "Add"), ([], 4, "OptMatMul"))
    assert list(count_operators(text).items()) == [("Add", 1), ("OptMatMul", 2)]


def test_operators_of_a_body_are_counted_apart() -> None:
    text = listed(
        ([[7, "loop"]], 0, "Source"),
        ([[7, "loop"]], 1, "Tanh"),
        ([[7, "loop"], [2, "loop"]], 1, "Add"),
        ([[7, "loop"]], 2, "Scan"),
        ([[9, "loop"]], 1, "Tanh"),
        ([], 7, "Scan"),
        ([], 9, "Scan"),
        ([], 1, "Tanh"),
    )
    assert count_operators(text) == {"Scan": 2, "Scan/Scan": 1, "Scan/Scan/Add": 1, "Scan/Tanh": 2, "Tanh": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"nodes": [{}]}',
        '{"nodes": [{"qualified_id": 3, "op_name": "Add"}]}',
        listed(([[5, ""]], 1, "Add")),
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        count_operators(text)


class Library:
    """A library with some functions, and a model and its runnable at once; it writes down what is called."""

    reported_version, no_states, pointer = "0.22.4", (), None

    def __init__(self, *functions: str, answer: str = "") -> None:
        self.functions, self.answer = functions, answer
        self.calls: list[Any] = []

    def find(self, name: str) -> str | None:
        return name if name in self.functions else None

    def optimise(self, *, declutter: bool) -> None:
        self.calls.append("optimise")

    def into_runnable(self, *, optimise: bool, declutter: bool = True) -> Library:
        self.calls.append(f"runnable, optimise={optimise}")
        return self

    def text(self, function: str, *arguments: Any) -> str:
        self.calls.append(function)
        if not self.answer:
            raise EngineLoadError("no shapes")
        return self.answer

    def facts(self) -> dict[str, Any]:
        """Return the facts of the operators, as a reply has them."""
        graph: Any
        profile, graph = optimise_for_profile(self, self)  # type: ignore[arg-type]
        list_operators(self, profile, graph, self.calls.append)  # type: ignore[arg-type]
        return {name: value for call in self.calls if isinstance(call, dict) for name, value in call.items()}


LISTED = listed(([], 1, "Tanh"))
OF_MODEL, OF_RUNNABLE = "tract_model_profile_json", "tract_runnable_profile_json"


def test_a_model_is_listed_before_a_runnable_consumes_it() -> None:
    library = Library(OF_MODEL, answer=LISTED)
    assert library.facts() == {OPERATORS: {"Tanh": 1}, OPERATORS_UNKNOWN: ""}
    assert [call for call in library.calls if isinstance(call, str)] == ["optimise", OF_MODEL]
    assert library.calls[1] == {OPERATORS_UNKNOWN: DIED_LISTING}, "before the call that may end the process"


def test_a_runnable_is_listed_where_the_engine_takes_one() -> None:
    library = Library(OF_RUNNABLE, answer=LISTED)
    assert library.facts() == {OPERATORS: {"Tanh": 1}, OPERATORS_UNKNOWN: ""}
    assert [call for call in library.calls if isinstance(call, str)] == ["runnable, optimise=True", OF_RUNNABLE]


def test_a_list_that_fails_has_its_reason() -> None:
    assert Library().facts() == {OPERATORS_UNKNOWN: "tract 0.22.4 has no function that lists them"}
    assert Library(OF_RUNNABLE).facts() == {OPERATORS_UNKNOWN: "no shapes"}
    assert "char 0" in Library(OF_MODEL, answer="nonsense").facts()[OPERATORS_UNKNOWN]


def test_a_job_that_dies_listing_runs_again_without(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = TractEngine(ResolvedEngine("wheel", "0.22.4", Path("libtract.so"), "0" * 64, "0.22.4"))
    flags = []

    def work(archive: Path, batches: Any, options: Any, timeout: float) -> EngineReply:
        flags.append(options["operators"])
        if options["operators"]:
            return EngineReply("crash", "optimise", "panicked", facts={OPERATORS_UNKNOWN: DIED_LISTING, "input": []})
        return EngineReply("ok", "run", facts={"input": []})

    monkeypatch.setattr(engine, "_work", work)
    reply = engine.run(Path("model.nnef"), [])
    assert flags == [True, False]
    assert (reply.status, reply.facts) == ("ok", {"input": [], OPERATORS_UNKNOWN: DIED_LISTING})


def test_a_job_that_dies_of_something_else_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = TractEngine(ResolvedEngine("wheel", "0.22.4", Path("libtract.so"), "0" * 64, "0.22.4"))
    crash = EngineReply("crash", "run", "panicked", facts={OPERATORS_UNKNOWN: "", OPERATORS: {"Tanh": 1}})
    calls = []
    monkeypatch.setattr(engine, "_work", lambda *arguments: calls.append(arguments) or crash)
    assert engine.run(Path("model.nnef"), []).facts[OPERATORS] == {"Tanh": 1}
    assert len(calls) == 1


def test_the_list_is_no_part_of_the_time_of_a_stage() -> None:
    times: dict[str, float] = {}
    for _ in range(2):
        with enter_stage("optimise", times, lambda *_: None):
            time.sleep(0.01)
        time.sleep(0.1)
    assert 0.02 <= times["optimise"] < 0.1
