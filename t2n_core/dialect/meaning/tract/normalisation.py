"""Normalisation by the mean of squares, over neighbouring channels, and by running statistics."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array, all_axes, cast, data_type
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


@defines("tract_core_rms_norm", "tract_transformers_rms_norm")
def rms_norm(input: Array, axis: int, eps: float = 1e-6) -> Array:
    """Return the input, divided by the square root of the mean of its squares along an axis.

    Formula: x / sqrt(mean(x^2) + eps). Shapes: same as the input.
    Special values: 0 / 0, NaN, where all are 0 and eps is 0; an infinity gives NaN for itself and 0 for the others.
    Source: torch.nn.functional.rms_norm over one axis; tract core/src/ops/nn/rms_norm.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(input / np.sqrt(np.mean(np.square(input), axis=canonical_axis, keepdims=True) + float(eps)))


@defines("tract_core_scaled_rms_norm", result="computed", raw=True)
def scaled_rms_norm(
    input: Array, scale: Array, axis: int, eps: float = 1e-6, out_dt: str = "", scale_dt: str = ""
) -> Array:
    """Return the input, divided by the root of the mean of its squares along an axis, times a weight.

    Formula: x / sqrt(mean(x^2) + eps) * scale, computed in float64. `scale_dt`, if not empty, is the type to which the
    quotient is rounded before the product; `out_dt` is the type of the result, or empty for the input's. Shapes: same
    as the input; `scale` has one axis, of the extent of `axis`.
    Source: transformers' LlamaRMSNorm; tract core/src/ops/nn/rms_norm.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    if scale.size != input.shape[canonical_axis]:
        raise SpecError(
            f"{scale.size} weights for an axis of {input.shape[canonical_axis]}", op="tract_core_scaled_rms_norm"
        )
    normed = rms_norm(input.astype(np.float64), canonical_axis, eps)
    if scale_dt:
        normed = cast(normed, data_type(scale_dt)).astype(np.float64)
    weights = scale.astype(np.float64).reshape([-1 if at == canonical_axis else 1 for at in range(input.ndim)])
    return cast(normed * weights, data_type(out_dt) if out_dt else input.dtype)


@defines("tract_onnx_lrn")
def lrn(input: Array, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, *, size: int) -> Array:
    """Return the input, divided by a power of the sum of squares over neighbouring channels.

    Formula: x / (bias + alpha / size * s)^beta, where s is the sum of the squares of the channels from c - floor((size
    - 1) / 2) to c + ceil((size - 1) / 2) that exist. Shapes: same as the input; the channels are axis 1.
    Source: ONNX LRN-13; tract onnx-opl/src/lrn.rs.
    """
    before, after = (size - 1) // 2, size // 2
    channels = input.shape[1]
    squares = np.square(input)
    sums = np.stack([squares[:, max(at - before, 0) : at + after + 1].sum(axis=1) for at in range(channels)], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(input / np.power(bias + alpha / size * sums, beta))


@defines("tract_extra_exp_mean_norm")
def exp_mean_norm(
    input: Array,
    state: Array,
    axis: int,
    alpha: float,
    skip: int = 0,
    stateless: bool = False,
    *,
    scaling_factor: float,
) -> Array:
    """Return the input without its running mean along an axis, divided by a factor.

    Formula: s[t] = alpha * s[t - 1] + (1 - alpha) * x[t], s[-1] = state; out[t] = (x[t] - s[t]) / scaling_factor. In
    the first `skip` steps s stays what it was. Shapes: `state` lacks the axis. This is the first call of a session;
    unless `stateless`, a later one begins with the last s, and counts its steps on.
    Source: tract extra/src/exp_unit_norm.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    mean, output = state, []
    for at, values in enumerate(np.moveaxis(input, canonical_axis, 0)):
        if at >= skip:
            mean = alpha * mean + (1.0 - alpha) * values
        output.append((values - mean) / scaling_factor)
    return np.moveaxis(np.asarray(output).reshape(np.moveaxis(input, canonical_axis, 0).shape), 0, canonical_axis)


@defines("tract_extra_exp_unit_norm")
def exp_unit_norm(
    input: Array,
    state: Array,
    axis: int,
    alpha: float,
    skip: int = 0,
    stateless: bool = False,
    complex: bool = False,
    epsilon: float = 1e-14,
) -> Array:
    """Return the input, divided by the square root of its running magnitude along an axis.

    Formula: s[t] = alpha * s[t - 1] + (1 - alpha) * max(|x[t]|, epsilon), s[-1] = state; out[t] = x[t] / sqrt(s[t]). In
    the first `skip` steps s stays what it was. With `complex` the last axis, of extent 2, is a complex number, and |x|
    its absolute value. Shapes: `state` lacks the axis, and the last one where that is a complex number. This is the
    first call of a session; unless `stateless`, a later one begins with the last s, and counts its steps on.
    Source: tract extra/src/exp_unit_norm.rs; the unit norm of libdf (DeepFilterNet).
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    magnitude, output = state, []
    for at, values in enumerate(np.moveaxis(input, canonical_axis, 0)):
        if at >= skip:
            size = np.sqrt(np.square(values).sum(axis=-1)) if complex else np.abs(values)
            magnitude = alpha * magnitude + (1.0 - alpha) * np.maximum(size, epsilon)
        with np.errstate(invalid="ignore", divide="ignore"):
            output.append(values / np.sqrt(magnitude[..., None] if complex else magnitude))
    return np.moveaxis(np.asarray(output).reshape(np.moveaxis(input, canonical_axis, 0).shape), 0, canonical_axis)
