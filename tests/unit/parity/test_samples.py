"""The sizes tried are the ones that find a baked-in size."""

from __future__ import annotations

import pytest

from t2n_core.errors import InputError
from t2n_core.parity.samples import size_assignments


def test_one_symbol():
    sizes = size_assignments({"T": 50})
    assert sizes == [{"T": 50}, {"T": 1}, {"T": 53}, {"T": 101}, {"T": 64}]


def test_edges_are_tried_alone():
    sizes = size_assignments({"B": 2, "T": 10}, None, {"T": [15, 16, 17]})
    assert [assignment for assignment in sizes if assignment["T"] in (15, 16, 17)] == [
        {"B": 2, "T": 16},
        {"B": 2, "T": 15},
        {"B": 2, "T": 17},
    ]


@pytest.mark.parametrize("traced", [1, 2, 7, 9, 64, 65, 1001])
def test_even_and_odd_sizes_are_among_them(traced):
    sizes = [assignment["T"] for assignment in size_assignments({"T": traced})]
    assert {size % 2 for size in sizes[1:]} == {0, 1}


def test_the_smallest_size_may_be_zero():
    assert {"P": 0} in size_assignments({"P": 5}, {"P": (0, None)})


def test_two_symbols_alone_and_together_with_different_sizes():
    sizes = size_assignments({"B": 2, "T": 10})
    assert sizes[0] == {"B": 2, "T": 10}
    assert {"B": 1, "T": 10} in sizes
    assert {"B": 2, "T": 1} in sizes
    assert {"B": 1, "T": 1} in sizes
    together = [assignment for assignment in sizes if assignment["B"] not in (1, 2) and assignment["T"] not in (1, 10)]
    assert len(together) == 2
    assert all(assignment["B"] != assignment["T"] for assignment in together)


@pytest.mark.parametrize("traced", [1, 2, 3, 16, 97, 16000])
def test_three_sizes_besides_the_traced_one_and_one_among_them(traced):
    sizes = [assignment["T"] for assignment in size_assignments({"T": traced})]
    assert sizes[0] == traced
    assert 1 in sizes
    assert len([size for size in sizes if size > traced and size % 2]) >= 2


@pytest.mark.parametrize(
    ("limits", "least"), [((4, None), 5), ((None, 12), 4), ((8, 12), 4), ((10, 11), 2), ((10, 10), 1)]
)
def test_limits_are_respected(limits, least):
    sizes = [assignment["T"] for assignment in size_assignments({"T": 10}, {"T": limits})]
    assert len(sizes) == least
    assert len(set(sizes)) == least
    assert all((limits[0] or 1) <= size <= (limits[1] or 10**9) for size in sizes)


def test_a_traced_size_outside_of_its_limits_is_an_error():
    with pytest.raises(InputError, match="traced at 3, outside its limits 4"):
        size_assignments({"T": 3}, {"T": (4, None)})


def test_nothing_varies():
    assert size_assignments({}) == []
