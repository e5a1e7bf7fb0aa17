"""The parts of a reducer that need no engine: failures alike, differences, delta debugging, arguments by name."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.document import Argument, Assignment, Expression, Name
from t2n_core.nnef.reading.parser import read_text
from t2n_core.reduce.failure import Failure, difference, failure_of
from t2n_core.reduce.minimise import Minimiser, minimise, run_passes
from t2n_core.reduce.passes.cuts import with_sizes

PANIC = "thread '<unnamed>' panicked at /root/.cargo/tract/core/src/ops/{file}.rs:{line}:9: index {n} out of bounds"


def test_panics_at_one_line_are_alike() -> None:
    replies = [EngineReply("crash", "run", PANIC.format(file="slice", line=71, n=n)) for n in (3, 12)]
    assert failure_of(replies[0]) == failure_of(replies[1]) == Failure("crash", "run", "ops/slice.rs:71")
    assert failure_of(EngineReply("crash", "run", PANIC.format(file="slice", line=72, n=3))) != failure_of(replies[0])


def test_an_old_panic_is_read() -> None:
    reply = EngineReply("crash", "run", "thread 'main' panicked at 'bad: [1, 2]', core/src/array.rs:27:5")
    assert failure_of(reply) == Failure("crash", "run", "array.rs:27")


def test_errors_are_alike_whatever_names_numbers_and_shapes_are() -> None:
    first = EngineReply("error", "load", 'building\nwiring node "v98" #12: Condition failed: `a < b` (12 vs [3, 4])')
    second = EngineReply("error", "load", 'building\nwiring node "o" #1: Condition failed: `x < y` (7 vs [1])')
    assert failure_of(first) == failure_of(second)
    assert failure_of(EngineReply("error", "run", first.message)) != failure_of(first)


@pytest.mark.parametrize(
    ("want", "got", "error"),
    [
        ([1.0, 2.0], [1.0, 2.2], 0.1),
        ([1.0, 2.0], [1.0, float("nan")], float("inf")),
        ([1.0, float("inf")], [3.0, 4.0], 0.0),
        ([], [], 0.0),
        ([1.0, 2.0], [1.0], float("inf")),
        ([True, False], [True, True], float("inf")),
        ([True, False], [True, False], 0.0),
        ([5, 10], [5, 9], 0.1),
    ],
)
def test_the_difference_is_a_share_of_the_largest_number(want: list[float], got: list[float], error: float) -> None:
    assert difference(np.array(want), np.array(got)) == pytest.approx(error)


def test_delta_debugging_leaves_what_is_needed_together() -> None:
    tried = []

    def attempt(names: list[str]) -> bool:
        tried.append(names)
        return {"b", "g"} <= set(names)

    assert minimise(list("abcdefghij"), attempt) == ["b", "g"]
    assert len(tried) < 40


def test_arguments_get_their_names_and_are_written_by_place() -> None:
    signatures = Signatures.of("tract", "0.21.13")
    assignment = read_text("graph g(x, w) -> (y) { y = conv(x, w, 0.0, stride = [2]); }").assignments[0]
    bound = signatures.bind(assignment)
    assert [argument.name for argument in bound.arguments] == ["input", "filter", "bias", "stride"]
    assert signatures.positional(bound) == assignment
    without = Assignment(("y",), "conv", tuple(argument for argument in bound.arguments if argument.name != "filter"))
    assert signatures.positional(without).text() == "y = conv(x, bias = 0.0, stride = [2])"
    assert "lacks filter" in signatures.problem(without)
    assert not signatures.problem(bound)


def test_numbers_take_the_place_of_sizes() -> None:
    half = Expression("( T + 1 ) / 2", (Name("T"),))
    assert with_sizes([half, Name("T"), Name("x"), 3], {"T": 8}) == [4, 8, "x", 3]
    other = Expression("S * T", (Name("S"), Name("T")))
    assert with_sizes([other], {"T": 8}) == [other]
    assert with_sizes(Argument("a", 1).value, {}) == 1


class _Digits(Minimiser[str]):
    """Fails as long as it holds a 7; time is over after some tries."""

    def __init__(self, program: str, tries: int) -> None:
        super().__init__(program)
        self.left = tries

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    def tidy(self, candidate: str) -> str:
        return candidate.strip("0")

    def fails_alike(self, candidate: str) -> bool:
        self.left -= 1
        return "7" in candidate


def test_passes_are_repeated_until_none_takes_anything_or_time_is_over() -> None:
    def without_first(state: _Digits) -> None:
        state.take_all(lambda program: [program[1:]])

    def without_last(state: _Digits) -> None:
        state.take_one(lambda program: [program[:-1]])

    log: list[str] = []
    state = _Digits("1207305", 100)
    run_passes(
        state, [without_first, without_last], after=lambda pass_: log.append(f"{pass_.__name__} {state.program}")
    )
    assert log == ["without_first 7305", "without_last 73", "without_last 7"]
    late = _Digits("1207305", 2)
    run_passes(late, [without_first, without_last])
    assert late.program == "7305"
    once = _Digits("1207305", 100)
    run_passes(once, [without_last], rounds=1)
    assert once.program == "12073"
