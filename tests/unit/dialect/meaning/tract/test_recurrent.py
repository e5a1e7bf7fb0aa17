"""One step and two steps of recurrences, computed by hand."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.recurrent import (
    causal_conv1d_update,
    gdn_recurrent,
    gru_epilogue,
    gru_seq,
    lstm_epilogue,
)
from t2n_core.errors import SpecError

THIRD = math.log(3.0)
"""Where the sigmoid is 3/4, and -THIRD where it is 1/4."""


def test_lstm_epilogue_has_its_gates_in_the_order_i_o_f_c() -> None:
    hidden, cell = lstm_epilogue(np.asarray([[THIRD, -THIRD, 0.0, 0.5]]), np.asarray([[2.0]]), 1)
    want = 0.5 * 2.0 + 0.75 * math.tanh(0.5)
    np.testing.assert_allclose(cell, [[want]])
    np.testing.assert_allclose(hidden, [[0.25 * math.tanh(want)]])


def test_gru_epilogue_has_its_gates_in_the_order_z_r_n() -> None:
    result = gru_epilogue(np.asarray([[THIRD, 0.0, 0.1]]), np.asarray([[0.0, -THIRD, 2.0]]), np.asarray([[3.0]]), 1)
    new = math.tanh(0.1 + 0.25 * 2.0)
    np.testing.assert_allclose(result, [[0.75 * 3.0 + 0.25 * new]])


def test_gru_seq_runs_both_ways() -> None:
    x, first = np.asarray([[[1.0], [2.0]]]), np.asarray([[[0.5]]])
    w, r = np.asarray([[0.0], [0.0], [1.0]]), np.zeros((3, 1))
    y, last = gru_seq(x, w, r, initial_h=first, hidden=1, chunk=1)
    step_one = 0.5 * math.tanh(1.0) + 0.25
    two = 0.5 * math.tanh(2.0) + step_one / 2
    np.testing.assert_allclose(y, [[[step_one], [two]]])
    np.testing.assert_allclose(last, [[[two]]])
    y, last = gru_seq(x, w, r, initial_h=first, hidden=1, chunk=-1)
    start = 0.5 * math.tanh(2.0) + 0.25
    np.testing.assert_allclose(y, [[[0.5 * math.tanh(1.0) + start / 2], [start]]])
    np.testing.assert_allclose(last[0, 0], y[0, 0])


def test_gru_seq_with_biases_and_products_made_before() -> None:
    x, first = np.asarray([[[0.3]]]), np.zeros((1, 1, 1))
    w, r = np.asarray([[1.0], [2.0], [3.0]]), np.zeros((3, 1))
    biases = np.asarray([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
    result = gru_seq(x, w, r, biases, first, hidden=1, chunk=1, has_bias=1)[0]
    update, reset = 1 / (1 + math.exp(-0.8)), 1 / (1 + math.exp(-1.3))
    np.testing.assert_allclose(result, [[[(1 - update) * math.tanh(1.2 + reset * 0.6)]]])
    enter = x @ w.T + biases[:, :3]
    made = gru_seq(enter, r=r, b=biases, initial_h=first, hidden=1, chunk=1, has_bias=1, projected=1)[0]
    np.testing.assert_allclose(made, result)


def test_gru_seq_without_its_states() -> None:
    y, last = gru_seq(
        np.zeros((2, 3, 1)), np.zeros((3, 1)), np.zeros((3, 1)), 0.0, np.ones((2, 1, 1)), hidden=1, chunk=1, emit_y=0
    )
    assert y.shape == (2, 0, 1)
    np.testing.assert_allclose(last, np.full((2, 1, 1), 0.125))
    for arguments in ({}, {"r": np.zeros((3, 1))}, {"initial_h": np.zeros((1, 1, 1))}):
        with pytest.raises(SpecError, match="`r` and `initial_h` are needed"):
            gru_seq(np.zeros((1, 1, 1)), hidden=1, chunk=1, **arguments)


def test_gru_seq_of_several_sequences() -> None:
    x = np.asarray([[[1.0], [2.0], [-1.0]], [[0.5], [0.0], [3.0]]])
    w, r = np.asarray([[0.2], [0.4], [1.0], [0.0], [-0.3], [0.7]]), np.arange(12.0).reshape(6, 2) / 10
    first = np.asarray([[[0.5, -0.5]], [[0.1, 0.2]]])
    y, last = gru_seq(x, w, r, initial_h=first, hidden=2, chunk=0)
    for batch in range(2):
        state = first[batch, 0]
        for at in range(3):
            enter, back = w[:, 0] * x[batch, at, 0], r @ state
            update, reset = 1 / (1 + np.exp(-(enter[:2] + back[:2]))), 1 / (1 + np.exp(-(enter[2:4] + back[2:4])))
            state = (1 - update) * np.tanh(enter[4:] + reset * back[4:]) + update * state
            np.testing.assert_allclose(y[batch, at], state)
        np.testing.assert_allclose(last[batch], [state])


def test_causal_conv1d_update() -> None:
    output, state = causal_conv1d_update(
        np.asarray([[[1.0, 2.0]]]), np.asarray([[10.0, 1.0]]), np.asarray([[[9.0, 0.1]]])
    )
    sums = np.asarray([[[2.0, 12.0]]])
    np.testing.assert_allclose(output, sums / (1 + np.exp(-sums)))
    assert state.tolist() == [[[1.0, 2.0]]]
    kernels = np.asarray([[[10.0, 1.0]], [[0.0, 2.0]]])
    several, states = causal_conv1d_update(
        np.asarray([[[1.0], [2.0]]] * 3), kernels, np.asarray([[[9.0, 0.1], [4.0, 5.0]]] * 3)
    )
    np.testing.assert_allclose(several, [[[2 / (1 + math.exp(-2.0))], [4 / (1 + math.exp(-4.0))]]] * 3)
    assert states.tolist() == [[[0.1, 1.0], [5.0, 2.0]]] * 3
    short = causal_conv1d_update(np.asarray([[[1.0]]]), np.asarray([[1.0, 1.0, 1.0]]), np.asarray([[[7.0, 8.0, 9.0]]]))
    assert short[1].tolist() == [[[8.0, 9.0, 1.0]]]


def test_gdn_recurrent() -> None:
    q = k = np.asarray([[[[1.0, 0.0]]]])
    v = np.asarray([[[[4.0, 8.0]]]])
    decay, beta = np.asarray([[[math.log(0.5)]]]), np.asarray([[[0.25]]])
    state = np.asarray([[[[2.0, 2.0], [6.0, 6.0]]]])
    output, last = gdn_recurrent(q, k, v, decay, beta, state)
    # decayed to 1 and 3; a quarter of what the value lacks is added to the key's row
    np.testing.assert_allclose(last, [[[[1.75, 2.75], [3.0, 3.0]]]], rtol=1e-5)
    np.testing.assert_allclose(output, np.asarray([[[[1.75, 2.75]]]]) / math.sqrt(2.0), rtol=1e-5)


def test_gdn_recurrent_serves_several_heads_by_one_key() -> None:
    q = k = np.asarray([[[[1.0], [-1.0]]]])
    v, zeros = np.asarray([[[[1.0], [2.0], [3.0], [4.0]]]]), np.zeros((1, 1, 4))
    _, last = gdn_recurrent(q, k, v, zeros, zeros + 1.0, np.zeros((1, 4, 1, 1)))
    np.testing.assert_allclose(last.ravel(), [1.0, 2.0, -3.0, -4.0], rtol=1e-5)


def test_gdn_recurrent_normalises_queries_and_keys() -> None:
    q, k = np.asarray([[[[1e-3, 0.0]], [[0.0, 5.0]]]]), np.asarray([[[[3.0, 4.0]], [[0.0, 2.0]]]])
    v = np.asarray([[[[10.0, 20.0]], [[3.0, 6.0]]]])
    decay, beta = np.asarray([[[0.0], [math.log(0.5)]]]), np.asarray([[[0.5], [1.0]]])
    output, last = gdn_recurrent(q, k, v, decay, beta, np.zeros((1, 1, 2, 2)))
    # the state is 3 6, 4 8 after one step, half of it in the next; 1e-6 more than the square of 1e-3 is twice that
    np.testing.assert_allclose(last, [[[[1.5, 3.0], [3.0, 6.0]]]], rtol=1e-5)
    np.testing.assert_allclose(output.reshape(2, 2), [[1.5, 3.0], [3.0 / 2**0.5, 6.0 / 2**0.5]], rtol=1e-5)
