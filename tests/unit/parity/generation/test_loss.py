"""The loss of small weights, against numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import InputError
from t2n_core.parity.generation.loss import WINDOW, weight_loss, windows_of

EXACT = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))
"""Probabilities of three words behind each of three tokens."""
TEXT = np.array([2, 0, 1])


def test_equal_logits_lose_nothing() -> None:
    """The next tokens are 0 and 1: exp(-(ln 0.5 + ln 0.8) / 2)."""
    loss = weight_loss([(TEXT, EXACT + 3, EXACT)])
    assert loss.perplexity == pytest.approx(loss.reference) == pytest.approx(0.4**-0.5)
    assert (loss.tokens, loss.agreement) == (3, 1.0)
    assert loss.divergence == pytest.approx(0, abs=1e-15)


def test_other_logits_are_told_by_each_figure() -> None:
    small = np.log(np.array([[0.25, 0.5, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])).astype(np.float16)
    loss = weight_loss([(TEXT, small, EXACT)])
    assert loss.perplexity == pytest.approx((0.25 * 0.8) ** -0.5, rel=1e-3)
    assert loss.agreement == pytest.approx(2 / 3)
    assert loss.divergence == pytest.approx((0.5 * np.log(2) - 0.25 * np.log(2)) / 3, rel=1e-2)
    assert "66.7 % of the best tokens agree" in loss.describe()


def test_logits_that_forbid_a_token_count() -> None:
    exact = np.array([[0.0, -np.inf], [0.0, 0.0]])
    assert weight_loss([(np.array([1, 0]), exact, exact)]).divergence == 0


def test_windows_are_predicted_without_the_tokens_before_them() -> None:
    """Of two windows 0 and 1 are predicted in the first one, and 2 in the second."""
    later = np.array([1, 2])
    loss = weight_loss([(TEXT, EXACT, EXACT), (later, EXACT[1:] - 1, EXACT[1:])])
    assert loss.perplexity == pytest.approx(loss.reference) == pytest.approx((0.5 * 0.8 * 0.1) ** (-1 / 3))
    assert (loss.tokens, loss.windows) == (5, 2)
    assert "(5 tokens in 2 windows)" in loss.describe()


def test_a_window_of_many_rows_is_like_a_few() -> None:
    """Rows are taken in blocks: the last token of each still predicts the first one of the next."""
    random = np.random.default_rng(0)
    logits, text = random.normal(size=(200, 5)), random.integers(0, 5, 200)
    loss = weight_loss([(text, logits, logits + 2 * random.normal(size=(200, 5)))])
    right = np.log(np.exp(logits).sum(-1)) - logits[np.arange(200), np.roll(text, -1)]
    assert loss.perplexity == pytest.approx(np.exp(right[:-1].mean()))
    assert loss.increase == pytest.approx(loss.perplexity / loss.reference - 1)


@pytest.mark.parametrize(
    ("tokens", "most", "least", "lengths"),
    [
        (10, 4, 1, [4, 4, 2]),
        (9, 4, 1, [4, 4]),
        (4, 4, 1, [4]),
        (2, None, 1, [2]),
        (2 * WINDOW + 2, None, 1, [WINDOW, WINDOW, 2]),
        (3 * WINDOW, 5 * WINDOW, 1 + WINDOW, [1 + WINDOW, 1 + WINDOW]),
        (3 * WINDOW, 5 * WINDOW, 2 * WINDOW, [2 * WINDOW]),
    ],
)
def test_windows_of_a_text(tokens: int, most: int | None, least: int, lengths: list[int]) -> None:
    windows = windows_of(np.arange(tokens), most, least)
    assert [len(window) for window in windows] == lengths
    np.testing.assert_array_equal(np.concatenate(windows), np.arange(sum(lengths)))


def test_one_token_has_nothing_to_predict() -> None:
    with pytest.raises(InputError, match="the text has 1 token: a perplexity needs two or more"):
        windows_of(TEXT[:1])
    with pytest.raises(InputError, match="the text has 3 tokens: this decoder needs 49 or more"):
        windows_of(TEXT, 96, 49)
