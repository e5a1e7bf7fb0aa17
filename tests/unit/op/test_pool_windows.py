"""The bound on the elements of a window holds for windows of every size."""

from __future__ import annotations

import pytest

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, evaluate, symbol
from t2n_core.op.aten.pool_windows import _largest_slot

T, S = symbol("T"), symbol("S")


@pytest.mark.parametrize(
    ("extent", "size"),
    [
        (T, FloorDiv(T, 2)),
        (T, FloorDiv(T, 2) + 1),
        (T, FloorDiv(T + 2, 3)),
        (T, FloorDiv(17 * T, 10)),
        (T, FloorDiv(T, 7)),
        (2 * T + 5, FloorDiv(3 * T, 4)),
        (T + 3, T),
        (3 * T - 2, T),
        (T, 2 * T - 1),
        (T, T - 3),
    ],
    ids=str,
)
def test_no_window_has_more_elements(extent: Dim, size: Dim) -> None:
    most = _largest_slot(extent, size)
    assert most is not None
    for number in range(1, 150):
        elements, windows = (evaluate(dim, {"T": number}) for dim in (extent, size))
        for window in range(windows):
            begin, end = window * elements // windows, -(-(window + 1) * elements // windows)
            assert end - begin <= most, (number, window)


@pytest.mark.parametrize("size", [S, FloorDiv(S, 2), T * T, 4 - T, 5])
def test_sizes_that_are_no_fraction_have_no_bound(size: Dim) -> None:
    assert _largest_slot(T, size) is None
