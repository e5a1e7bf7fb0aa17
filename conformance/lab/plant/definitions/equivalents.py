"""The mutants of definitions that compute the same values as the definition itself, with the reason."""

from typing import Final

_AT_ZERO = "both branches are 0 at 0"
_WHOLE = "what is divided is a multiple of the divisor, so that nothing is rounded"
_CUT = "what lies beyond the result is cut off"
_EITHER = "only `signed` and `symmetric` together change the number of steps"
_ONE_GROUP = "one group repeats each head once"
_LATER_CALL = "it changes the later calls of a session alone"
_OVERWRITTEN = "every element is written"
_BEYOND_REACH = "a tap at the reach of a kernel, or beyond it, has the weight 0"
_NO_STEP = "a stride of 0 is refused"
_NO_CHUNK = "a chunk is not 0"
_NOT_TAKEN = "a value beyond the bounds is not taken"

EQUIVALENT: Final[dict[str, str]] = {
    "onnx.detection.non_zero: np.zeros -> np.ones": "there are no elements",
    "onnx.detection._overlap: min -> max": "a negative area in common is no larger share than 0",
    "onnx.detection._overlap: min(shared) <= 0 -> min(shared) < 0": "an area in common of 0 is a share of 0 too",
    "onnx.detection._overlap: total > 0 -> total >= 0": "boxes that share an area do not cover one of 0",
    "onnx.detection._overlap: common / total if total > 0 else 0.0 -> common / total if total > 0 else 0.125": (
        "boxes that share an area do not cover one of 0"
    ),
    "onnx.lookup.direct_lookup: np.where(in_table, index, 0) -> np.where(in_table, index, 1)": (
        "the value that is read for an unknown index is not taken"
    ),
    "onnx.lookup.reverse_lookup: np.zeros -> np.ones": "without keys the fallback is taken everywhere",
    "standard.activation.elu: x < 0 -> x <= 0": _AT_ZERO,
    "standard.activation.elu: np.minimum(x, 0.0) -> np.minimum(x, 0.125)": "it holds off an overflow only",
    "standard.activation.prelu: x < 0 -> x <= 0": _AT_ZERO,
    "standard.activation.leaky_relu: x < 0 -> x <= 0": _AT_ZERO,
    "standard.convolution._product: matrices.shape[2] == 1 -> matrices.shape[2] == 0": "the product is the same",
    "standard.convolution.conv: filter.shape[0] // count -> -(-filter.shape[0] // count)": _WHOLE,
    "standard.convolution.deconv: filter.shape[0] // count -> -(-filter.shape[0] // count)": _WHOLE,
    "standard.convolution._as_tract_reads: inputs // groups -> -(-inputs // groups)": _WHOLE,
    "standard.pooling._spread: extent - 1 -> extent + 1": _CUT,
    "standard.pooling._spread: extent - 1 -> extent - 0": _CUT,
    "standard.rounding.linear_quantize: min_max_linear_quantize(x, min, max, bits, False, False) -> "
    "min_max_linear_quantize(x, min, max, bits, True, False)": _EITHER,
    "standard.rounding.linear_quantize: min_max_linear_quantize(x, min, max, bits, False, False) -> "
    "min_max_linear_quantize(x, min, max, bits, False, True)": _EITHER,
    "standard.resampling._places: max(extent * times - 1, 1) -> max(extent * times - 1, 2)": (
        "the divisor is 1 only where the dividend is 0"
    ),
    "standard.shape.reshape: math.prod(replaced) // known_size -> -(-math.prod(replaced) // known_size)": _WHOLE,
    "standard.shape.split: value.shape[axis] // total -> -(-value.shape[axis] // total)": _WHOLE,
    "standard.slicing.slice_axes: step > 0 -> step >= 0": "a step of 0 is refused by `range`",
    "standard.slicing.slice_axes: step != 1 -> step != 0": "elements are taken by their indices, and not by a slice",
    "standard.reduction.sum_reduce: np.abs(total) // count * np.sign(total) -> "
    "np.abs(total) // count / np.sign(total)": "the sign is 1 or -1, and 0 / 0 of no sum becomes 0",
    "tract.activation.silu: -0.0 -> 0.0": "the zeros are equal",
    "tract.attention.attend: q.shape[1] // k.shape[1] -> -(-q.shape[1] // k.shape[1])": _WHOLE,
    "tract.attention.attend: q.shape[1] // k.shape[1] if q.ndim == 4 else 1 -> "
    "q.shape[1] // k.shape[1] if q.ndim == 4 else 0": _ONE_GROUP,
    "tract.attention.attend: groups > 1 -> groups >= 1": _ONE_GROUP,
    "tract.attention.attend: groups > 1 -> groups > 0": _ONE_GROUP,
    "tract.attention._quantised: np.where(high > low, (high - low) / levels, 1.0) -> "
    "np.where(high > low, (high - low) / levels, 1.375)": "equal values are 0 steps apart, of whatever size",
    "tract.attention.quantized_dyn_kv_cache: output.shape[-2] > _SINK -> output.shape[-2] >= _SINK": (
        "no token is rounded where none is left"
    ),
    "tract.gathering.gather_elements: True -> False": "dense and sparse indices name the same elements",
    "tract.normalisation.exp_mean_norm: False -> True": _LATER_CALL,
    "tract.normalisation.exp_unit_norm: False -> True": _LATER_CALL,
    "tract.quantised.qconv: (0, 0) -> (0, 1)": "channels after those of the filters are not read",
    "tract.quantised.qconv: filter.shape[0] // groups -> -(-filter.shape[0] // groups)": _WHOLE,
    "tract.resampling.cubic: far <= 1.0 -> far < 1.0": "both polynomials are 0 at 1",
    "tract.resampling.cubic: far < 2.0 -> far <= 2.0": "the polynomial is 0 at 2",
    "tract.resampling._weights: 2.0 if interpolator == 'cubic' else 1.0 -> "
    "2.625 if interpolator == 'cubic' else 1.0": _BEYOND_REACH,
    "tract.resampling._weights: 2.0 if interpolator == 'cubic' else 1.0 -> "
    "2.0 if interpolator == 'cubic' else 1.375": _BEYOND_REACH,
    "tract.resampling._weights: np.floor -> np.ceil": _BEYOND_REACH,
    "tract.resampling._weights: np.ceil -> np.floor": _BEYOND_REACH,
    "tract.resampling._weights: int(np.ceil(coordinate + reach)) + 1 -> "
    "int(np.ceil(coordinate + reach)) + 0": _BEYOND_REACH,
    "tract.resampling._weights: int(np.ceil(coordinate + reach)) + 1 -> "
    "int(np.ceil(coordinate + reach)) + 2": _BEYOND_REACH,
    "tract.resampling.resize: 0.0 -> 0.125": "without a region nothing is outside of the input",
    "tract.resampling.resize: axis + input.ndim -> axis - input.ndim": "the ends are counted from the end",
    "tract.resampling._padded: extent - 1.0 -> extent + 1.0": "the taps of a reflected place are reflected too",
    "tract.resampling._taps: cell + 1.0 -> cell + 1.375": "the tap is truncated to an integer",
    "tract.resampling.grid_sample: -1 -> -0": "a scalar 1 is as good as ones",
    "tract.shape.downsample: stride < 0 -> stride <= 0": _NO_STEP,
    "tract.shape.downsample: stride < 0 -> stride < 1": _NO_STEP,
    "tract.shape.downsample: stride > 0 -> stride >= 0": _NO_STEP,
    "tract.streaming.pulse_delay: False -> True": "it changes no value",
    "tract.streaming.pulse_delay: (delay + overlap, 0) -> (delay + overlap, 1)": _CUT,
    "tract.streaming.pulse_pad: 0 -> 1": _LATER_CALL,
    "tract.recurrent.gru_seq: 0 -> 1": _LATER_CALL,
    "tract.recurrent.gru_seq: 1 -> 2": "any number but 0 asks for the hidden states",
    "tract.recurrent.gru_seq: 0.0 -> 0.125": "a number is no matrix, and no biases: it is not read",
    "tract.recurrent.gru_seq: np.zeros -> np.ones": _OVERWRITTEN,
    "tract.recurrent.gdn_recurrent: np.zeros -> np.ones": _OVERWRITTEN,
    "t2n_core.dialect.arrays.cast: 0.0 -> 0.125": "it is truncated to 0",
    "t2n_core.dialect.arrays.cast: integers <= float(bounds.min) -> integers < float(bounds.min)": (
        "the lowest integer is itself a float"
    ),
    "t2n_core.dialect.arrays.cast: above | below -> above & below": _NOT_TAKEN,
    "t2n_core.dialect.arrays.cast: np.where(above | below, 0.0, integers) -> "
    "np.where(above | below, 0.125, integers)": _NOT_TAKEN,
    "t2n_core.dialect.scan.scan: min -> max": "there is one number",
    "t2n_core.dialect.scan.scan: step(0) -> step(1)": "every chunk of an empty axis is the same",
    "t2n_core.dialect.scan._chunk: chunk < 0 -> chunk <= 0": _NO_CHUNK,
    "t2n_core.dialect.scan._chunk: chunk < 0 -> chunk < 1": _NO_CHUNK,
    "t2n_core.dialect.scan._chunk: np.zeros -> np.ones": "the shapes of the results alone are taken",
    "t2n_core.dialect.scan._output: chunk < 0 -> chunk <= 0": _NO_CHUNK,
    "t2n_core.dialect.scan._output: chunk < 0 -> chunk < 1": _NO_CHUNK,
    "tract.recurrent.gdn_recurrent: heads // query.shape[2] -> -(-heads // query.shape[2])": _WHOLE,
}
"""By `Mutant.name`."""
