from __future__ import annotations

from typing import Any

import pytest

from t2n_core.nnef.sizes.dims import Max, Min, floor_div, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.tract.sizes.streams import in_stream, with_a_step

T = symbol("T")


@pytest.mark.parametrize(
    ("argument", "expected", "holds"),
    [
        (Max(T - 3, 0), "T - 3", "T >= 3"),
        ([T, Max(T - 9, 0)], "[T, T - 9]", "T >= 9"),
        (Min(T, 3), "Min(T, 3)", "T >= 1"),
        (T - 1, "T - 1", "T >= 1"),
        (None, "None", "T >= 1"),
    ],
)
def test_sizes(argument: Any, expected: str, holds: str) -> None:
    size, sizes = in_stream(argument, SizeRange.of(["T"]), "T")
    assert (str(size), str(sizes)) == (expected, holds)


@pytest.mark.parametrize(
    ("begin", "expected", "holds"), [(Min(T, 3), 3, "T >= 3"), (Min(2, T - 2), 2, "T >= 4"), (4, 4, "T >= 1")]
)
def test_begins(begin: Any, expected: int, holds: str) -> None:
    begins, sizes = in_stream([begin], SizeRange.of(["T"]), "T", of_begin=True)
    assert (begins, str(sizes)) == ([expected], holds)


def test_a_short_range_is_kept() -> None:
    short = SizeRange({"T": (1, 2)})
    assert in_stream(Min(symbol("T", 1, 2), 3), short, "T") == (symbol("T", 1, 2), short)
    assert in_stream(Max(symbol("T", 1, 2) - 3, 0), short, "T", of_begin=True) == (0, short)


def test_the_time_axis_alone_is_longer() -> None:
    both = SizeRange.of(["B", "T"])
    assert in_stream(Min(T, 3), both, "T", of_begin=True) == (3, SizeRange({"B": (1, None), "T": (3, None)}))
    assert in_stream(Min(T, 3), both, "B", of_begin=True) == (Min(T, 3), both)


@pytest.mark.parametrize(
    ("count", "holds"), [(floor_div(T, 2), "T >= 2"), (floor_div(T + 1, 3) - 1, "T >= 5"), (T, "T >= 1"), (4, "T >= 1")]
)
def test_a_step_is_left(count: Any, holds: str) -> None:
    assert str(with_a_step(count, SizeRange.of(["T"]), "T")) == holds


def test_steps_of_another_axis_too_are_left_as_they_are() -> None:
    both, short = SizeRange.of(["B", "T"]), SizeRange({"T": (1, 2)})
    assert with_a_step(T + symbol("B") - 4, both, "T") == both
    assert with_a_step(T - 3, short, "T") == short
