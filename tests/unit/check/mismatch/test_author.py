"""The distance from the definitions, and the states that a graph asks for."""

import math

import numpy as np
import pytest

from t2n_core.check.mismatch.author import _agree_by_criteria, _distance
from t2n_core.parity.further_runs.kept_states import keeps_state
from t2n_core.parity.request import CheckRequest


def test_the_distance_is_the_largest_difference() -> None:
    expected = [np.asarray([1.0, -4.0]), np.asarray([2.0])]
    assert _distance(expected, [np.asarray([1.5, -4.0]), np.asarray([-1.0])]) == 3.0
    assert _distance(expected, [np.asarray([1.0]), np.asarray([2.0])]) == math.inf


@pytest.mark.parametrize(
    ("found", "expected"), [([math.nan, 1.0], 0.0), ([math.nan, math.nan], math.inf), ([math.inf, 1.0], math.inf)]
)
def test_other_places_of_nan_are_infinitely_far(found: list[float], expected: float) -> None:
    assert _distance([np.asarray([math.nan, 1.0])], [np.asarray(found)]) == expected


def test_another_data_type_is_right_only_if_it_is_meant() -> None:
    request = CheckRequest(None, [])  # type: ignore[arg-type]
    expected, narrow, wide = np.asarray([3]), np.asarray([3], np.int8), np.asarray([3], np.int32)
    assert _agree_by_criteria(request, [(expected, narrow.dtype, narrow, wide.dtype)])
    assert not _agree_by_criteria(request, [(expected, narrow.dtype, wide, narrow.dtype)])
    assert _agree_by_criteria(request, [(expected, narrow.dtype, wide, wide.dtype)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = relu(x);", False),
        ('y = tract_core_scan("body", scan = [], reset_every_turn = 1);', False),
        ('y = tract_core_scan("body", scan = []);', True),
        ("(y, h) = tract_core_gru_seq(x, w, reset_every_turn = 1);", False),
        ("(y, h) = tract_core_gru_seq(x, w, reset_every_turn = 0);", True),
        ('a = tract_core_scan("b", reset_every_turn = 1);\n  y = tract_core_scan("b", skip = 0);', True),
        ("y = tract_transformers_dyn_kv_cache(x);", True),
    ],
)
def test_a_graph_keeps_a_state(text: str, expected: bool) -> None:
    assert keeps_state(text) == expected
