"""Rank overlap by hand, and the bytes of a quantized cache."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.parity.generation.cache_loss import _sizes, rank_overlap
from t2n_core.parity.state_pairs import StatePair


def test_equal_ranks_overlap_as_far_as_the_depth_goes() -> None:
    logits = np.random.default_rng(0).normal(size=300)
    assert rank_overlap(logits, 2 * logits + 1) == pytest.approx(1 - 0.9**100)
    assert rank_overlap(logits, logits, depth=3) == pytest.approx(1 - 0.9**3)


def test_ranks_are_weighted_from_the_best_on() -> None:
    reference = np.array([5.0, 4, 3, 2])
    swapped_first, swapped_last = np.array([4.0, 5, 3, 2]), np.array([5.0, 4, 2, 3])
    assert rank_overlap(swapped_first, reference, 0.5) == pytest.approx(0.5 * (0 + 0.5 + 0.25 + 0.125))
    assert rank_overlap(swapped_last, reference, 0.5) == pytest.approx(0.5 * (1 + 0.5 + 0.25 * 2 / 3 + 0.125))
    assert rank_overlap(-reference, reference, 0.5) == pytest.approx(0.5 * (0 + 0 + 0.25 * 2 / 3 + 0.125))


@pytest.mark.parametrize(
    ("name", "bits", "tokens", "expected"),
    [
        ("in_cache_key_0", 8, 3, 3 * 20),
        ("in_cache_key_0", 8, 4 + 2 * 32 + 7, 4 * 20 + 2 * (32 * 5 + 2 * 20) + 7 * 20),
        ("in_cache_key_0", 4, 4 + 32, 4 * 20 + 32 * 3 + 2 * 20),
        ("in_cache_value_0", 8, 4 + 10, 4 * 20 + 10 * (5 + 8)),
        ("in_cache_value_0", 4, 4 + 10, 4 * 20 + 10 * (3 + 8)),
    ],
)
def test_bytes_are_those_of_the_engines_layout(name: str, bits: int, tokens: int, expected: int) -> None:
    pair = StatePair(name, "out", np.zeros((1, 6, 0, 5), np.float16), (2,))
    assert _sizes(pair, tokens, bits) == (6 * expected, 6 * tokens * 5 * 2)
