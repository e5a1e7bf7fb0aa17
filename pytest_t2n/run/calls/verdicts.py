"""The checks that a test begins, the outcome of each, and where the test says that it expects a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from t2n_core.parity.outcome import Outcome

_RAISES = type(pytest.raises(AssertionError))
BY_RAISES = "the test expects it: pytest.raises"
HOW_TO_EXPECT = (
    "call `assert_parity()`, which fails the test; a test that expects a failure says so: with pytest.raises around "
    '`assert_parity()`, or as `check_parity(expected="why")`'
)
_SEVERITY = {"mismatch": 0, "crash": 1, "timeout": 2, "oom": 3, "error": 4}
"""Order of failures: the worst of a test is its outcome; silent mismatches are worst, so they come first."""
UNFINISHED = "a check of this test was begun and has no result: wait for its thread, pool or task"


class Check:
    """A check, or an export that failed; it has no outcome until it ends."""

    __slots__ = ("expected", "is_recorded", "outcome", "raised")

    def __init__(self, expected: str = "") -> None:
        self.outcome: Outcome | None = None
        self.expected = expected
        """How the test says that it expects a failure; empty if it does not."""
        self.raised: BaseException | None = None
        """The exception that the failure raised in the test."""
        self.is_recorded = False
        """True once the record of the test was made, which this check is part of."""

    @property
    def is_open(self) -> bool:
        """Return whether the check has no result, or failed and the test does not say that it expects that."""
        return self.outcome is None or not (self.outcome.passed or self.expected)


class Verdicts:
    """The checks of one test, in whatever thread they run; `tell_late` takes a line for what came after its end."""

    def __init__(self, nodeid: str, tell_late: Callable[[str], object] = lambda line: None) -> None:
        self._nodeid, self._tell_late = nodeid, tell_late
        self._checks: list[Check] = []
        self._has_ended = False

    @property
    def open(self) -> list[Check]:
        """Return the checks that a passing test may not have."""
        return [check for check in self._checks if check.is_open]

    @property
    def expected(self) -> str:
        """Return how the test says that it expects its failed checks; empty if it does not expect one of them."""
        failed = [check for check in self._checks if check.outcome is None or not check.outcome.passed]
        return failed[0].expected if failed and all(check.expected for check in failed) else ""

    def begin(self, expected: str = "") -> Check:
        """Return a new check, which has to end before its test does. Raises RuntimeError after the end of the test."""
        if self._has_ended:
            self._tell_late(f"{self._nodeid}: a check was begun after its test had ended")
            raise RuntimeError("this check belongs to a test that has ended")
        self._checks.append(Check(f"the test expects it: {expected}" if expected else ""))
        return self._checks[-1]

    def end(self, check: Check, outcome: Outcome, raised: BaseException | None = None) -> None:
        """Add the outcome of a check, and the exception that it raises in the test, if any."""
        check.outcome, check.raised = outcome, raised
        if self._has_ended and check.is_open:
            self._tell_late(f"{self._nodeid}: a check failed after its test had ended: {outcome.describe()}")

    def accept(self, error: BaseException) -> None:
        """Mark the failures expected that raised an error, which pytest.raises accepted, one of its causes or parts."""
        of_error = {id(part) for part in _parts(error)}
        for check in self._checks:
            if id(check.raised) in of_error:
                check.expected = BY_RAISES

    def record(self) -> None:
        """Take the checks so far as part of the record of the test."""
        for check in self._checks:
            check.is_recorded = True

    def close(self) -> str:
        """End the test; return what its record leaves out, or an empty text."""
        self._has_ended = True
        for check in self.open:
            if not check.is_recorded:
                words = UNFINISHED if check.outcome is None else check.outcome.describe()
                return f"a check ended badly after the result of this test was recorded: {words}"
        return ""


def decisive(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the outcome that represents all checks of a cell, a weak pass before others; None if there is none."""
    failures = [outcome for outcome in outcomes if not outcome.passed]
    if failures:
        return min(failures, key=lambda outcome: _SEVERITY.get(outcome.status.value, len(_SEVERITY)))

    def looseness(outcome: Outcome) -> tuple[bool, int]:
        return outcome.status.value == "weak", outcome.level.rank if outcome.level else -1

    return max(outcomes, key=looseness, default=None)


@contextmanager
def watched_raises(accept: Callable[[BaseException], object]) -> Iterator[None]:
    """Call `accept` with each exception that `pytest.raises` expects, in every thread, within the block."""
    original = _RAISES.__exit__

    def leave(self: Any, *raised: Any) -> Any:
        __tracebackhide__ = True
        is_expected = original(self, *raised)
        if is_expected and raised[1] is not None:
            accept(raised[1])
        return is_expected

    _RAISES.__exit__ = leave  # type: ignore[method-assign]
    try:
        yield
    finally:
        _RAISES.__exit__ = original  # type: ignore[method-assign]


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes, and the parts of a group."""
    left, seen = [error], set()
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        left += [*(more for more in (part.__cause__, part.__context__) if more), *getattr(part, "exceptions", ())]
