"""Normalisation in evaluation mode: statistics are weights, or computed over axes of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT16, FLOAT32, Value
from t2n_core.nnef.sizes.dims import Dim, floor_div, product
from t2n_core.op.option_effects import use_option
from t2n_core.op.registry import op
from t2n_core.op.weights import constant_values, row
from t2n_core.torch_graph.simplify.norms import affine_of_norm

Results = tuple[Value | None, Value | None, Value | None]


# ---------------------------------------------------------------------------------------------------------- batch norm
@op("aten::batch_norm")
def batch_norm(
    g: Emitter,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Value:
    """x * scale + shift, with scale = weight / sqrt(var + eps) and shift = bias - mean * scale."""
    if running_mean is None or running_var is None:  # a layer that never tracks statistics, in either mode
        axes = [0, *range(2, input.rank)]
        return _affine_channels(g, _standardise(g, input, axes, eps)[0], weight, bias, input.dtype)
    if training:
        raise g.fail(
            "batch_norm uses the statistics of its batch: the module is in training mode",
            hint="call model.eval() before exporting",
        )
    if input.dtype.kind != "f":
        raise g.fail(f"batch_norm of {input.dtype} cannot be expressed in NNEF")
    if input.dtype == FLOAT16 and use_option(g, "norm_in_f32"):
        wide = g.cast(input, FLOAT32)
        return g.cast(
            batch_norm(g, wide, weight, bias, running_mean, running_var, training, momentum, eps), input.dtype
        )
    scale, shift = _fixed_affine(g, input, weight, bias, running_mean, running_var, eps) or _computed_affine(
        g, input, weight, bias, running_mean, running_var, eps
    )
    return g.add(g.mul(input, scale), shift)


def _fixed_affine(
    g: Emitter, input: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, eps: float
) -> tuple[Value, Value] | None:
    """Return scale and shift as constants, computed in float64; None if one of the parameters is not a weight."""
    parameters = [None if v is None else constant_values(v) for v in (weight, bias, mean, var)]
    if any(array is None and v is not None for array, v in zip(parameters, (weight, bias, mean, var), strict=True)):
        return None
    gamma, beta, center, spread = (None if array is None else array.astype(np.float64) for array in parameters)
    assert center is not None
    assert spread is not None
    with np.errstate(all="ignore"):  # what overflows here does so in PyTorch
        scale, shift = affine_of_norm(gamma, beta, center, spread, eps)
        shape = [1, -1, *(1 for _ in input.shape[2:])]
        scale, shift = (array.astype(input.dtype).reshape(shape) for array in (scale, shift))
    return g.constant(scale), g.constant(shift)


def _computed_affine(
    g: Emitter, input: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, eps: float
) -> tuple[Value, Value]:
    """Return scale and shift, computed by the engine from parameters that the graph computes."""
    dtype = FLOAT32 if input.dtype == FLOAT16 else input.dtype
    gamma, beta = (None if v is None else g.cast(v, dtype) for v in (weight, bias))
    factor = g.rsqrt(g.add(g.cast(var, dtype), eps))
    factor = factor if gamma is None else g.mul(factor, gamma)
    shift = g.neg(g.mul(g.cast(mean, dtype), factor))
    rows = [factor, shift if beta is None else g.add(shift, beta)]
    scale, shift = (row(g, g.cast(array, input.dtype), input.rank) for array in rows)
    return scale, shift


@op("aten::_native_batch_norm_legit_no_training")
def native_batch_norm_no_training(
    g: Emitter,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> Results:
    return batch_norm(g, input, weight, bias, running_mean, running_var, False, momentum, eps), None, None


@op("aten::native_batch_norm")
def native_batch_norm(
    g: Emitter,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    if running_mean is None or running_var is None:
        out, mean, inverse = _standardise(g, input, [0, *range(2, input.rank)], eps)
        channels = [input.shape[1]]
        out = _affine_channels(g, out, weight, bias, input.dtype)
        return out, g.reshape_to(mean, channels), g.reshape_to(inverse, channels)
    return batch_norm(g, input, weight, bias, running_mean, running_var, training, momentum, eps), None, None


# ------------------------------------------------------------------------------------- statistics of the input itself
def _standardise(g: Emitter, value: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(var + eps) over `axes`, mean, and 1 / sqrt(var + eps); var is the biased variance.

    Float16 is computed in float32, as PyTorch does; the first result stays float32 until `_affine` rounds it.
    """
    if value.dtype == FLOAT16:
        out, mean, inverse = _standardise(g, g.cast(value, FLOAT32), axes, eps)
        return out, g.cast(mean, value.dtype), g.cast(inverse, value.dtype)
    lead = value.rank - len(axes)
    batch_shape, joined = value.shape[:lead], value.shape[lead:]
    if len(axes) > 1 and list(axes) == list(range(lead, value.rank)) and g.sums_rows(batch_shape, joined):
        row = g.reshape_to(value, [*batch_shape, product(joined)])
        out, *statistics = _standardise(g, row, [lead], eps)
        mean, inverse = (g.unsqueeze(v, axes=list(range(lead + 1, value.rank))) for v in statistics)
        return g.reshape_to(out, value.shape), mean, inverse
    mean = g.mean_of(value, axes)
    out, inverse = g.norm_of(g.sub(value, mean), axes, eps)
    return out, mean, inverse


def _affine(g: Emitter, value: Value, weight: Value | None, bias: Value | None, dtype: np.dtype[Any]) -> Value:
    """Return value * weight + bias as `dtype`, rounded once. Both are already broadcast against `value`."""
    scaled = value if weight is None else g.mul(value, g.cast(weight, value.dtype))
    return g.cast(scaled if bias is None else g.add(scaled, g.cast(bias, value.dtype)), dtype)


def _affine_channels(g: Emitter, value: Value, weight: Value | None, bias: Value | None, dtype: np.dtype[Any]) -> Value:
    weight = None if weight is None else row(g, weight, value.rank)
    return _affine(g, value, weight, None if bias is None else row(g, bias, value.rank), dtype)


@op("aten::layer_norm")
def layer_norm(
    g: Emitter,
    input: Value,
    normalized_shape: Sequence[Dim],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:
    axes = range(input.rank - len(normalized_shape), input.rank)
    return _affine(g, _standardise(g, input, axes, eps)[0], weight, bias, input.dtype)


@op("aten::native_layer_norm")
def native_layer_norm(
    g: Emitter,
    input: Value,
    normalized_shape: Sequence[Dim],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, Value, Value]:
    axes = range(input.rank - len(normalized_shape), input.rank)
    out, mean, inverse = _standardise(g, input, axes, eps)
    return _affine(g, out, weight, bias, input.dtype), mean, inverse


@op("aten::group_norm")
def group_norm(
    g: Emitter,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:
    return _standardise_groups(g, input, num_groups, weight, bias, eps)[0]


@op("aten::native_group_norm")
def native_group_norm(
    g: Emitter,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Dim,
    C: Dim,
    HxW: Dim,
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    return _standardise_groups(g, input, group, weight, bias, eps)


def _standardise_groups(
    g: Emitter, value: Value, groups: int, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    """Standardise groups of channels, each over all its positions."""
    batch, channels, *places = value.shape
    split = g.reshape_to(value, [batch, groups, floor_div(channels, groups), *places])
    out, mean, inverse = _standardise(g, split, range(2, split.rank), eps)
    out = g.reshape_to(out, value.shape)
    drop = list(range(2, split.rank))
    out = _affine_channels(g, out, weight, bias, value.dtype)
    return out, g.squeeze_axes(mean, drop), g.squeeze_axes(inverse, drop)


@op("aten::instance_norm")
def instance_norm(
    g: Emitter,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Value:
    """Standardise each channel of each batch item separately; with running statistics this is a batch_norm."""
    if not use_input_stats:
        return batch_norm(g, input, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        raise g.fail("instance_norm updates its statistics: the module is in training mode", hint="call model.eval()")
    out = _standardise(g, input, range(2, input.rank), eps)[0]
    return _affine_channels(g, out, weight, bias, input.dtype)


@op("aten::rms_norm")
def rms_norm(
    g: Emitter, input: Value, normalized_shape: Sequence[Dim], weight: Value | None = None, eps: float | None = None
) -> Value:
    """x / sqrt(mean(x^2) + eps); without eps, the dtype's."""
    return fused_rms_norm(g, input, normalized_shape, weight, eps)[0]


@op("aten::_fused_rms_norm")
def fused_rms_norm(
    g: Emitter, input: Value, normalized_shape: Sequence[Dim], weight: Value | None, eps: float | None
) -> tuple[Value, Value]:
    if input.dtype == FLOAT16:
        small = float(np.finfo(np.float16).eps) if eps is None else eps
        out, inverse = fused_rms_norm(g, g.cast(input, FLOAT32), normalized_shape, None, small)
        return _affine(g, g.cast(out, input.dtype), weight, None, input.dtype), g.cast(inverse, input.dtype)
    axes = list(range(input.rank - len(normalized_shape), input.rank))
    small = float(np.finfo(input.dtype).eps) if eps is None else eps
    out, inverse = g.norm_of(input, axes, small)
    return _affine(g, out, weight, None, input.dtype), inverse
