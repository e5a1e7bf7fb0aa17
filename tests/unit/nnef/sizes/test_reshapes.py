from __future__ import annotations

import pytest

from t2n_core.nnef.sizes.dims import Shape, product, same, symbol
from t2n_core.nnef.sizes.reshapes import ReshapePart, factors, inserted_axes, join_parts, reshape_parts

B, T = symbol("B"), symbol("T")


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ((B, 4, T, 2 * T - 1), (B, 4, 2 * T - 1, T), [ReshapePart(2, (T, 2 * T - 1), (2 * T - 1, T))]),
        ((B, 4, T, 6), (B, 4 * T, 6), [ReshapePart(1, (4, T), (4 * T,))]),
        (
            (B, 4, T, 2 * T - 1),
            (4 * B, T * (2 * T - 1)),
            [ReshapePart(0, (B, 4), (4 * B,)), ReshapePart(2, (T, 2 * T - 1), (T * (2 * T - 1),))],
        ),
        ((B, T), (B, T, 1), [ReshapePart(1, (T,), (T, 1))]),
        ((B, T), (1, B, T), [ReshapePart(0, (B,), (1, B))]),
        ((B, 1, T), (B, T), [ReshapePart(1, (1, T), (T,))]),
        ((B, T, 1, 1), (B, T), [ReshapePart(1, (T, 1, 1), (T,))]),
        ((1,), (1, 1, 1), [ReshapePart(0, (1,), (1, 1, 1))]),
        ((B, T), (B, T), []),
    ],
)
def test_parts(before: Shape, after: Shape, parts: list[ReshapePart]) -> None:
    assert reshape_parts(before, after) == parts


def test_parts_done_from_the_last_on_make_the_shape() -> None:
    before, after = (2, 3, B, T, 5, 7, 1), (6, B, T * 5, 7)
    shape: Shape = before
    for part in reversed(reshape_parts(before, after)):
        assert shape[part.start : part.start + part.count] == part.before
        shape = (*shape[: part.start], *part.after, *shape[part.start + part.count :])
    assert shape == after


def test_joined_parts_leave_out_what_is_kept_around() -> None:
    before, after = (B, 2, 3, T, 5, 2, 7), (B, 6, T, 10, 7)
    joined_part = join_parts(reshape_parts(before, after), before, after)
    assert joined_part == ReshapePart(1, (2, 3, T, 5, 2), (6, T, 10))
    assert same(product(joined_part.before), product(joined_part.after))


def test_factors_are_those_beside_numbers() -> None:
    assert factors((4, 2 * B, T * (2 * T - 1))) == 3


@pytest.mark.parametrize(
    ("before", "after", "axes"),
    [
        ((T,), (1, T, 1), [0, 2]),
        ((B, 1, T), (B, 1, 1, T), [2]),
        ((B, T), (B, T), []),
        ((B, T), (T, 1, B), None),
        ((B, T), (B * T, 1), None),
        ((1, T), (T,), None),
    ],
)
def test_inserted_axes(before: Shape, after: Shape, axes: list[int] | None) -> None:
    assert inserted_axes(before, after) == axes
