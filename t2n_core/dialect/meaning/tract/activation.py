"""Activations: functions of one element, and the gated unit of two tensors."""

from __future__ import annotations

import math

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)); 0 at -inf, 1 at +inf."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


@defines("tract_core_silu", "tract_transformers_silu")
def silu(x: Array) -> Array:
    """Return x * sigmoid(x), element by element.

    Formula: x / (1 + exp(-x)). Domain: all floats. Special values: +inf gives +inf; -inf gives -0, the limit; NaN gives
    NaN; the least value is -0.27846 at x = -1.27846.
    Source: torch.nn.SiLU; tract core/src/ops/nn/silu.rs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.where(np.isneginf(x), -0.0, x * sigmoid(x)))


@defines("tract_core_hard_swish")
def hard_swish(x: Array) -> Array:
    """Return x * clip(x / 6 + 1/2, 0, 1), element by element.

    Special values: 0 for every x <= -3; x for every x >= 3; NaN gives NaN; -inf gives NaN (inf * 0), +inf gives +inf.
    Source: ONNX HardSwish-14; tract core/src/ops/nn/mod.rs.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(x * np.clip(x / 6.0 + 0.5, 0.0, 1.0))


@defines("tract_core_gelu_approx", "tract_transformers_gelu_approx")
def gelu_approx(input: Array, fast_impl: bool = False) -> Array:
    """Return the elementwise GELU in its tanh approximation.

    Formula: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^p))) with p = 3; with `fast_impl` p = 2, another
    function: it is not symmetric, and differs from the GELU by up to 0.06.
    Special values: +inf gives +inf; NaN gives NaN; -inf gives 0 * -inf, which is NaN, where p = 3.
    Source: torch.nn.GELU(approximate="tanh"); tract core/src/ops/nn/gelu_approximate.rs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        cubed = np.power(input, 2 if fast_impl else 3)
        return np.asarray(0.5 * input * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (input + 0.044715 * cubed))))


@defines("tract_core_erf")
def erf(x: Array) -> Array:
    """Return the error function, 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x, element by element.

    Special values: odd; +inf gives 1, -inf gives -1, NaN gives NaN.
    Source: ONNX Erf-13; tract core/src/ops/math/mod.rs.
    """
    values = np.asarray(x, dtype=np.float64)
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(values)).astype(np.float64).reshape(values.shape)


@defines("tract_core_round_even")
def round_even(x: Array) -> Array:
    """Return the nearest integer, ties to even, element by element.

    Special values: 0.5 and -0.5 give 0 (with the sign of x), 1.5 and 2.5 give 2; infinities and NaN stay. Integers
    stay what they are.
    Source: ONNX Round-11; torch.round; tract core/src/ops/math/mod.rs.
    """
    return np.asarray(np.rint(x)) if x.dtype.kind == "f" else x


@defines("tract_core_pow_const")
def pow_const(input: Array, exponent: float) -> Array:
    """Return x to the power of a constant, element by element.

    Special values: IEEE 754's `pow`: x^0 is 1 even for NaN; a negative x with a fractional exponent is NaN; 0 to a
    negative exponent is infinite.
    Source: tract core/src/ops/math/mod.rs (PowConst).
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.power(input, float(exponent)))


@defines("tract_core_clamped_swiglu", result="float32")
def clamped_swiglu(gate: Array, up: Array, alpha: float, limit: float) -> Array:
    """Return (u + 1) * g * sigmoid(alpha * g) with g = min(gate, limit) and u = clip(up, -limit, limit).

    Shapes: `gate`, `up` and the result have one shape; there is no broadcasting. Domain: float16 and float32; alpha is
    finite, limit finite and positive. The result is float32, whatever the inputs are.
    Special values: a NaN in `gate` counts as `limit` (IEEE 754's minimum), one in `up` stays NaN.
    Source: tract core/src/ops/nn/clamped_swiglu.rs; the activation of gpt-oss.
    """
    if gate.shape != up.shape:
        raise SpecError(f"`gate` has the shape {gate.shape}, `up` {up.shape}", op="tract_core_clamped_swiglu")
    if not (math.isfinite(alpha) and math.isfinite(limit) and limit > 0):
        raise SpecError("alpha must be finite, limit finite and positive", op="tract_core_clamped_swiglu")
    g = np.fmin(gate, limit)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((np.clip(up, -limit, limit) + 1.0) * g / (1.0 + np.exp(-alpha * g)))
