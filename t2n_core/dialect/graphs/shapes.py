"""Shapes of the results of operators, from the shapes of their tensors and the numbers among their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from t2n_core.dialect.meaning.standard.convolution import transposed
from t2n_core.dialect.meaning.windows import windows_of
from t2n_core.dialect.tensors import Tensor

Shape = tuple[int, ...]
Arguments = Mapping[str, Any]
Rule = Callable[[Arguments], "Shape | list[Shape]"]
"""Returns a shape, or one for each result."""


def _of_first(arguments: Arguments) -> Shape:
    values = (item for value in arguments.values() for item in (value if isinstance(value, list) else [value]))
    shape: Shape = next(item for item in values if isinstance(item, Tensor)).shape
    return shape


def _broadcast(arguments: Arguments) -> Shape:
    shapes = [value.shape for value in arguments.values() if isinstance(value, Tensor)]
    rank = max(map(len, shapes))  # NNEF aligns leading axes
    return np.broadcast_shapes(*(shape + (1,) * (rank - len(shape)) for shape in shapes))


def _tile(arguments: Arguments) -> Shape:
    return tuple(size * times for size, times in zip(_of_first(arguments), arguments["repeats"], strict=True))


def _pad(arguments: Arguments) -> Shape:
    return tuple(size + sum(both) for size, both in zip(_of_first(arguments), arguments["padding"], strict=True))


def _concat(arguments: Arguments) -> Shape:
    values, axis = arguments["values"], arguments["axis"]
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)
    return tuple(shape)


def _stack(arguments: Arguments) -> Shape:
    values, axis = arguments["values"], arguments["axis"]
    shape = list(values[0].shape)
    shape.insert(axis, len(values))
    return tuple(shape)


def _matmul(arguments: Arguments) -> Shape:
    a, b = list(arguments["A"].shape), list(arguments["B"].shape)
    rows = a[-1] if arguments.get("transposeA") else a[-2]
    columns = b[-2] if arguments.get("transposeB") else b[-1]
    return (*np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2])), rows, columns)


def _linear(arguments: Arguments) -> Shape:
    return (*_of_first(arguments)[:-1], arguments["filter"].shape[0])


def extents_of(arguments: Arguments) -> dict[str, int]:
    """Return the extent of each letter in the expression of a sum of products."""
    left, _, _ = arguments["expr"].replace(" ", "").partition("->")
    extents: dict[str, int] = {}
    for letters, tensor in zip(left.split(","), arguments["inputs"], strict=True):
        for letter, extent in zip(letters, tensor.shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, 1))
    return extents


def _einsum(arguments: Arguments) -> Shape:
    extents = extents_of(arguments)
    return tuple(extents.get(letter, 1) for letter in arguments["expr"].replace(" ", "").partition("->")[2])


def _attention(arguments: Arguments) -> Shape:
    return (*arguments["q"].shape[:-1], arguments["v"].shape[-1])


def _reduced(arguments: Arguments) -> Shape:
    return tuple(1 if axis in arguments["axes"] else size for axis, size in enumerate(_of_first(arguments)))


def _moments(arguments: Arguments) -> list[Shape]:
    return [_reduced(arguments)] * 2


def _topk(arguments: Arguments) -> list[Shape]:
    shape = list(_of_first(arguments))
    shape[arguments["axis"]] = int(arguments["k"].array) if isinstance(arguments["k"], Tensor) else arguments["k"]
    return [tuple(shape)] * 2


def _to_shape(arguments: Arguments) -> Shape:
    return tuple(map(int, arguments["shape"]))


def _pooled(arguments: Arguments) -> Shape:
    shape = _of_first(arguments)
    options = (arguments.get(name) for name in ("padding", "stride", "dilation"))
    return windows_of(shape, arguments["size"], *options).count(shape)


def _pooled_with_index(arguments: Arguments) -> list[Shape]:
    return [_pooled(arguments)] * 2


def _conv(arguments: Arguments) -> Shape:
    shape, window = _of_first(arguments), arguments["filter"].shape
    options = (arguments.get(name) for name in ("padding", "stride", "dilation"))
    windows = windows_of(shape[2:], window[2:], *options)
    return (shape[0], window[0], *windows.count(shape[2:]))


def _separable_conv(arguments: Arguments) -> Shape:
    batch, _, *spatial = _conv({**arguments, "filter": arguments["plane_filter"]})
    return (batch, arguments["point_filter"].shape[0], *spatial)


def _deconv(arguments: Arguments) -> Shape:
    shape, window = _of_first(arguments), arguments["filter"].shape
    options = (arguments.get(name) for name in ("padding", "stride", "dilation", "output_shape"))
    _, _, spatial = transposed(shape[2:], window[2:], *options)
    groups = arguments.get("groups", 1) or shape[1]
    # the standard's filter is [c, o / groups, …], and tract's [o, c / groups, …]
    channels = window[0] if window[1] * groups == shape[1] else window[1] * groups
    return (shape[0], channels, *spatial)


def _separable_deconv(arguments: Arguments) -> Shape:
    channels = _deconv({**arguments, "filter": arguments["point_filter"], "output_shape": None})[1]
    shape = _deconv({**arguments, "filter": arguments["plane_filter"]})
    return (shape[0], channels, *shape[2:])


def _upsampled(arguments: Arguments) -> Shape:
    shape = _of_first(arguments)
    return (*shape[:2], *(size * times for size, times in zip(shape[2:], arguments["factor"], strict=True)))


def _downsampled(arguments: Arguments) -> Shape:
    shape = _of_first(arguments)
    return (*shape[:2], *(-(-size // step) for size, step in zip(shape[2:], arguments["factor"], strict=True)))


def _strided(arguments: Arguments) -> Shape:
    shape, axis = list(_of_first(arguments)), arguments["axis"]
    shape[axis] = max(0, -(-(shape[axis] - arguments.get("modulo", 0)) // abs(arguments["stride"])))
    return tuple(shape)


def _resized(arguments: Arguments) -> Shape:
    shape, sizes, scales = _of_first(arguments), arguments.get("sizes"), arguments.get("scales")
    if isinstance(sizes, Tensor) and sizes.shape:
        return tuple(map(int, sizes.array))
    if not isinstance(scales, Tensor):
        raise KeyError("scales")
    return tuple(math.floor(size * np.float32(scale)) for size, scale in zip(shape, scales.array, strict=True))


def _gather(arguments: Arguments) -> Shape:
    shape, axis = _of_first(arguments), arguments["axis"] % len(_of_first(arguments))
    return (*shape[:axis], *arguments["indices"].shape, *shape[axis + 1 :])


def _gather_elements(arguments: Arguments) -> Shape:
    shape: Shape = arguments["indices"].shape
    return shape


def _gather_nd(arguments: Arguments) -> Shape:
    where: Shape = arguments["indices"].shape
    return (*where[:-1], *_of_first(arguments)[arguments["batch_dims"] + where[-1] :])


def _range(arguments: Arguments) -> Shape:
    start, end, step = (_number(arguments[name]) for name in ("start", "end", "step"))
    return (max(0, math.ceil((end - start) / step)),)


def _dyn_slice(arguments: Arguments) -> Shape:
    shape = list(_of_first(arguments))
    shape[arguments["axis"]] = int(arguments["len"])
    return tuple(shape)


def _one_hot(arguments: Arguments) -> Shape:
    shape = list(_of_first(arguments))
    shape.insert(arguments["axis"] % (len(shape) + 1), int(arguments["dim"]))
    return tuple(shape)


def _number(value: Any) -> float:
    return float(value.array.reshape(())) if isinstance(value, Tensor) else float(value)


_OF_FIRST: Final = """relu sigmoid silu tanh softabs softplus elu selu gelu prelu leaky_relu softmax abs neg sign copy
    rcp recip sqr square sqrt rsqr rsqrt exp log log2 sin cos tan asin acos atan sinh cosh asinh acosh atanh floor ceil
    round not batch_normalization l1_normalization l2_normalization local_contrast_normalization
    local_mean_normalization local_response_normalization local_variance_normalization linear_quantize
    logarithmic_quantize min_max_linear_quantize zero_point_linear_quantize
    tract_core_bitnot tract_core_cast tract_core_cumsum tract_core_erf tract_core_gelu_approx tract_core_hard_swish
    tract_core_is_inf tract_core_is_nan tract_core_log_softmax tract_core_pow_const tract_core_rms_norm
    tract_core_round_even tract_core_scatter_elements tract_core_scatter_nd tract_core_silu tract_core_softmax
    tract_core_trilu tract_onnx_isinf tract_onnx_is_nan tract_onnx_lrn tract_transformers_gelu_approx
    tract_transformers_rms_norm tract_transformers_scaled_masked_softmax tract_transformers_silu"""
_BROADCAST: Final = """add sub mul div pow min max and or lt gt le ge eq ne select clamp tract_core_bitand
    tract_core_bitor tract_core_bitxor tract_core_xor tract_shl tract_shr"""
_REDUCED: Final = """sum_reduce mean_reduce max_reduce min_reduce any_reduce all_reduce argmax_reduce argmin_reduce
    tract_core_argmax_reduce_last tract_core_argmin_reduce_last tract_core_product_reduce"""
RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(_OF_FIRST.split(), _of_first),
    **dict.fromkeys(_BROADCAST.split(), _broadcast),
    **dict.fromkeys(_REDUCED.split(), _reduced),
    **dict.fromkeys(("box", "avg_pool", "max_pool", "rms_pool", "argmax_pool"), _pooled),
    **dict.fromkeys(("nearest_upsample", "multilinear_upsample"), _upsampled),
    **dict.fromkeys(("gather", "tract_core_gather"), _gather),
    **dict.fromkeys(("tract_core_einsum", "tract_onnx_einsum"), _einsum),
    **dict.fromkeys(("tract_core_resize", "tract_onnx_resize"), _resized),
    "moments": _moments,
    "max_pool_with_index": _pooled_with_index,
    "tile": _tile,
    "pad": _pad,
    "concat": _concat,
    "stack": _stack,
    "matmul": _matmul,
    "linear": _linear,
    "conv": _conv,
    "separable_conv": _separable_conv,
    "deconv": _deconv,
    "separable_deconv": _separable_deconv,
    "nearest_downsample": _downsampled,
    "tract_core_broadcast": _to_shape,
    "tract_core_downsample": _strided,
    "tract_core_dyn_slice": _dyn_slice,
    "tract_core_gather_elements": _gather_elements,
    "tract_core_gather_nd": _gather_nd,
    "tract_core_one_hot": _one_hot,
    "tract_core_range": _range,
    "tract_core_topk": _topk,
    "tract_transformers_sdpa": _attention,
}
VIEWS: Final = frozenset({"reshape", "transpose", "squeeze", "unsqueeze", "slice", "split", "unstack"})
"""Operators whose definitions return views of their tensor, which take no memory."""
OF_SIZES: Final = frozenset(
    """tract_core_shape_of tract_core_cast tract_core_gather gather concat stack add sub mul div min max neg abs sign
    floor ceil round not and or lt gt le ge eq ne select tract_core_product_reduce sum_reduce max_reduce min_reduce
    reshape transpose squeeze unsqueeze slice""".split()
)
"""Operators that graphs compute sizes with; their results are not much larger than their operands."""
