"""The choice of experts, and their weighted sum."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.experts import moe_ffn
from t2n_core.errors import SpecError

X = np.asarray([[1.0, 0.0]])
ROUTER = np.asarray([[0.0, 5.0], [math.log(3.0), 5.0], [0.0, 5.0]])
"""Logits 0, log 3 and 0 for X: the second expert, then the first."""
W1 = np.ones((3, 2, 1))
W2 = np.asarray([1.0, 10.0, 100.0]).reshape(3, 1, 1) * np.ones((3, 1, 2))


def outcome(**changed: object) -> float:
    """Return the first element of the result, for experts that return 1, 10 and 100."""
    arguments = {"k": 2, "activation": "relu", "gate": "softmax_topk", **changed}
    return float(moe_ffn(X, ROUTER, W1, W2, **arguments)[0, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gate", "expected"), [("softmax_topk", 7.75), ("softmax_all", 6.2), ("sigmoid", 8.0), ("raw", 10 * math.log(3.0))]
)
def test_gates(gate: str, expected: float) -> None:
    assert outcome(gate=gate) == pytest.approx(expected)


def test_activations() -> None:
    silu = 1.0 / (1.0 + math.exp(-1.0))
    assert outcome(activation="silu") == pytest.approx(7.75 * silu)
    assert outcome(activation="swiglu", w3=2 * W1) == pytest.approx(7.75 * silu * 2)
    gelu = 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * 1.044715))
    assert outcome(activation="gelu") == pytest.approx(7.75 * gelu)
    for changed in ({"activation": "swiglu"}, {"activation": "tanh"}, {"gate": "mean"}, {"act_limit": 1.0}):
        with pytest.raises(SpecError):
            outcome(**changed)


def test_the_clamped_activation() -> None:
    glu = 0.5 / (1 + math.exp(-1.0))
    assert outcome(w3=2 * W1, act_limit=0.5, act_alpha=2.0) == pytest.approx(7.75 * 1.5 * glu)
    plain = 0.5 / (1 + math.exp(-0.5))
    assert outcome(w3=2 * W1, act_limit=0.5) == pytest.approx(7.75 * 1.5 * plain)


def test_relu_is_0_below_0() -> None:
    assert outcome(w1_bias=np.full((3, 1), -3.0)) == 0.0


def test_biases() -> None:
    assert outcome(wg_bias=np.asarray([0.0, 0.0, 9.0]), k=1) == pytest.approx(100.0)
    assert outcome(w1_bias=np.ones((3, 1))) == pytest.approx(7.75 * 2)
    assert outcome(w3=W1, w3_bias=np.full((3, 1), 2.0)) == pytest.approx(7.75 * 3)
    assert outcome(w2_bias=np.ones((3, 2))) == pytest.approx(8.75)


def test_the_linear_layout_and_batches() -> None:
    flipped = {"k": 2, "activation": "relu", "gate": "softmax_topk", "expert_layout": "linear"}
    result = moe_ffn(X[None], ROUTER, np.swapaxes(W1, 1, 2), np.swapaxes(W2, 1, 2), **flipped)  # type: ignore[arg-type]
    assert result.shape == (1, 1, 2)
    np.testing.assert_allclose(result, 7.75)
    third = np.swapaxes(np.asarray([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]).reshape(3, 2, 1), 1, 2)
    result = moe_ffn(X[None], ROUTER, np.swapaxes(W1, 1, 2), np.swapaxes(W2, 1, 2), third, **flipped)  # type: ignore[arg-type]
    np.testing.assert_allclose(result, 7.5 * 2 + 0.25)


def test_each_token_has_its_experts() -> None:
    x = np.asarray([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]])
    result = moe_ffn(x, ROUTER, W1, W2, k=1, activation="relu", gate="softmax_topk")
    assert result[..., 0].tolist() == [[10.0, 1.0, 20.0], [30.0, 2.0, 0.0]]
    assert result[..., 1].tolist() == result[..., 0].tolist()
