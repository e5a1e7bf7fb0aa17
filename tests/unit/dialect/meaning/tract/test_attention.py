"""Attention over keys whose weights are known."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.attention import (
    apply_rope,
    dyn_kv_cache,
    quantized_dyn_kv_cache,
    quantized_kv_sdpa,
    scaled_masked_softmax,
    sdpa,
    window_kv_sdpa,
)
from t2n_core.errors import SpecError

VALUES = np.asarray([[[[1.0], [2.0], [4.0]]]])
"""Values of three positions; equal scores weigh them equally."""
EQUAL = np.zeros((1, 1, 3, 1))
CACHE = {"name": "k", "axis": 2, "datum_type": "f32", "past_sequence_shape": [], "input_sequence_shape": []}


def test_apply_rope() -> None:
    x = np.asarray([[1.0, 2.0, 3.0, 4.0]])
    assert apply_rope(x, np.zeros((1, 4)), np.ones((1, 4))).tolist() == [[-3.0, -4.0, 1.0, 2.0]]
    assert apply_rope(x, np.full((1, 4), 2.0), np.zeros((1, 4))).tolist() == (2 * x).tolist()
    with pytest.raises(SpecError, match="the last axis has 3 elements"):
        apply_rope(np.zeros((1, 3)), np.zeros(3), np.zeros(3))


def test_masked_softmax() -> None:
    scores = np.asarray([[0.0, 2 * math.log(3.0), 5.0]])
    mask = np.asarray([[True, True, False]])
    np.testing.assert_allclose(scaled_masked_softmax(scores, mask, 0.5), [[0.25, 0.75, 0.0]])
    added = np.asarray([[math.log(3.0), 0.0, -math.inf]])
    np.testing.assert_allclose(scaled_masked_softmax(scores, added, 0.5), [[0.5, 0.5, 0.0]])
    nothing = np.zeros((1, 3), dtype=bool)
    np.testing.assert_array_equal(scaled_masked_softmax(scores, nothing, 0.5), [[math.nan] * 3])
    np.testing.assert_array_equal(scaled_masked_softmax(scores, nothing, 0.5, True), [[0.0] * 3])


def test_the_causal_mask_ends_at_the_last_key() -> None:
    result = sdpa(EQUAL[:, :, :2], EQUAL, VALUES, is_causal=True)
    np.testing.assert_allclose(result.ravel(), [1.5, 7 / 3])
    with pytest.raises(SpecError, match="exclude each other"):
        sdpa(EQUAL, EQUAL, VALUES, np.zeros((1, 1, 3, 3)), is_causal=True)


def test_the_scale_is_that_of_the_width() -> None:
    q, k = np.full((1, 1, 1, 4), 1.0), np.asarray([[[[0.0] * 4, [math.log(3.0) / 2] * 4]]])
    np.testing.assert_allclose(sdpa(q, k, VALUES[:, :, :2]).ravel(), [1.75])
    np.testing.assert_allclose(
        sdpa(q, k, VALUES[:, :, :2], scale=0.25).ravel(), [1 + math.sqrt(3) / (1 + math.sqrt(3))]
    )


def test_neighbouring_heads_share_keys() -> None:
    values = np.asarray([[[[1.0]], [[2.0]]]])
    assert sdpa(np.zeros((1, 4, 1, 1)), np.zeros((1, 2, 1, 1)), values).ravel().tolist() == [1.0, 1.0, 2.0, 2.0]


def test_the_window_is_causal() -> None:
    np.testing.assert_allclose(window_kv_sdpa(EQUAL, EQUAL, VALUES, 2, 2).ravel(), [1.0, 1.5, 3.0])
    np.testing.assert_allclose(window_kv_sdpa(EQUAL, EQUAL, VALUES, 2, 1).ravel(), [1.0, 2.0, 4.0])


def test_quantised_keys_and_values() -> None:
    values = np.asarray([[[[0.0, 255.0, 100.4], [5.0, 5.0, 5.0]]]])
    result = quantized_kv_sdpa(np.zeros((1, 1, 1, 3)), np.zeros((1, 1, 2, 3)), values, 2)
    np.testing.assert_allclose(result.ravel(), [2.5, 130.0, 52.5])
    # the middle key is on no step: 0.5 of 255 steps is rounded up to 1
    keys = np.asarray([[[[0.0], [0.5], [255.0]]]])
    exact = quantized_kv_sdpa(np.ones((1, 1, 1, 1)), keys, VALUES, 2, math.log(3.0))
    np.testing.assert_allclose(exact.ravel(), [4.0])
    near = quantized_kv_sdpa(np.ones((1, 1, 1, 1)), -keys, VALUES, 2, math.log(3.0))
    np.testing.assert_allclose(near.ravel(), [0.5 + 1.0])


def test_a_cache_returns_its_first_input() -> None:
    assert dyn_kv_cache(VALUES, **CACHE).tolist() == VALUES.tolist()


def test_a_quantised_cache_keeps_the_first_tokens() -> None:
    tokens = np.tile(np.asarray([0.0, 15.0, 7.4]), (1, 1, 6, 1))
    coarse = quantized_dyn_kv_cache(tokens, **CACHE, bits=4, per_channel=0)
    assert coarse[0, 0, :, 2].tolist() == [7.4] * 4 + [7.0] * 2
    fine = quantized_dyn_kv_cache(tokens, **CACHE, bits=8, per_channel=0)
    np.testing.assert_allclose(fine[0, 0, 5], [0.0, 15.0, 126 * 15 / 255])


def test_a_quantised_cache_of_keys_rounds_full_blocks() -> None:
    tokens = np.linspace(0.0, 3.9, 40).reshape(1, 1, 40, 1)
    result = quantized_dyn_kv_cache(tokens, **CACHE, bits=4, per_channel=1)
    np.testing.assert_allclose(result[0, 0, :4], tokens[0, 0, :4])
    np.testing.assert_allclose(result[0, 0, 36:], tokens[0, 0, 36:])
    steps = (result[0, 0, 4:36] - 0.4) / (3.1 / 15)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert len(np.unique(np.round(steps))) == 16
    with pytest.raises(SpecError, match="5 bits"):
        quantized_dyn_kv_cache(tokens, **CACHE, bits=5, per_channel=1)


def test_the_last_axis_is_that_of_the_channels() -> None:
    x = np.asarray([[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]])
    turned = apply_rope(x, np.full((2, 4), 10.0), np.ones((2, 4)))
    assert turned.tolist() == [[[7.0, 16.0, 31.0, 42.0], [43.0, 52.0, 75.0, 86.0]]]
    scores = np.log(np.asarray([[[1.0, 3.0], [1.0, 1.0]], [[3.0, 1.0], [1.0, 7.0]]]))
    result = scaled_masked_softmax(scores, np.zeros((1, 1, 2)), 1.0)
    np.testing.assert_allclose(result, [[[0.25, 0.75], [0.5, 0.5]], [[0.75, 0.25], [0.125, 0.875]]])


def test_attention_without_heads() -> None:
    q, k = np.zeros((1, 2, 4)), np.zeros((1, 3, 4))
    np.testing.assert_allclose(sdpa(q, k, VALUES[0]).ravel(), [7 / 3, 7 / 3])
    np.testing.assert_allclose(sdpa(q, k, VALUES[0], is_causal=True).ravel(), [1.5, 7 / 3])


def test_a_quantised_cache_without_heads() -> None:
    tokens = np.tile(np.asarray([0.0, 15.0, 7.4]), (1, 6, 1))
    result = quantized_dyn_kv_cache(tokens, **{**CACHE, "axis": 1}, bits=4, per_channel=0)
    assert result[0, :, 2].tolist() == [7.4] * 4 + [7.0] * 2
    keys = quantized_dyn_kv_cache(np.tile(tokens, (1, 6, 1)), **{**CACHE, "axis": 1}, bits=4, per_channel=1)
    assert keys[0, :, 2].tolist() == [7.4] * 36


@pytest.mark.parametrize(("tokens", "rounded"), [(35, 0), (36, 32), (67, 32), (68, 64)])
def test_a_quantised_cache_of_keys_rounds_no_part_of_a_block(tokens: int, rounded: int) -> None:
    keys = np.sqrt(np.arange(float(tokens))).reshape(1, tokens, 1)
    result = quantized_dyn_kv_cache(keys, **{**CACHE, "axis": 1}, bits=8, per_channel=1)
    exact = (result == keys).ravel()
    assert exact[:4].all()
    assert exact[4 + rounded :].all()
    assert exact[4 : 4 + rounded].sum() == 2 * rounded // 32  # the least and the greatest of a block


def test_keys_are_held_in_255_steps() -> None:
    keys = np.asarray([[[[0.0], [1.0], [255.0]]]])
    result = quantized_kv_sdpa(np.ones((1, 1, 1, 1)), keys / 100, VALUES, 2, 1.0)
    weights = np.exp([0.0, 0.01, 2.55])
    np.testing.assert_allclose(result.ravel(), [weights @ [1.0, 2.0, 4.0] / weights.sum()])
