"""The loss of small weights, against numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import InputError
from t2n_core.parity.generation.loss import weight_loss

EXACT = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))
"""Probabilities of three words behind each of three tokens."""
TEXT = np.array([2, 0, 1])


def test_equal_logits_lose_nothing() -> None:
    """The next tokens are 0 and 1: exp(-(ln 0.5 + ln 0.8) / 2)."""
    found = weight_loss(TEXT, EXACT + 3, EXACT)
    assert found.perplexity == pytest.approx(found.reference) == pytest.approx(0.4**-0.5)
    assert (found.tokens, found.agreement) == (3, 1.0)
    assert found.divergence == pytest.approx(0, abs=1e-15)


def test_other_logits_are_told_by_each_figure() -> None:
    small = np.log(np.array([[0.25, 0.5, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])).astype(np.float16)
    found = weight_loss(TEXT, small, EXACT)
    assert found.perplexity == pytest.approx((0.25 * 0.8) ** -0.5, rel=1e-3)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.divergence == pytest.approx((0.5 * np.log(2) - 0.25 * np.log(2)) / 3, rel=1e-2)
    assert "66.7 % of the best tokens agree" in found.describe()


def test_logits_that_forbid_a_token_count() -> None:
    exact = np.array([[0.0, -np.inf], [0.0, 0.0]])
    assert weight_loss(np.array([1, 0]), exact, exact).divergence == 0


def test_one_token_has_nothing_to_predict() -> None:
    with pytest.raises(InputError, match="two tokens or more"):
        weight_loss(TEXT[:1], EXACT[:1], EXACT[:1])
