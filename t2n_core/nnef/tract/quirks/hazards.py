"""All hazards: what loads in tract but computes wrong values, or takes the engine down, and cannot be repaired.

Each was seen on wheels; `tests/contract/test_hazards.py` or the dialect's suite has a case for each.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from packaging.version import Version

from t2n_core.nnef.tract.quirks.hazard import (
    COVERS_BATCH_OR_CHANNELS,
    ENDS_BEYOND_EXTENT,
    GOES_BACKWARDS_IN_CHUNKS,
    HAS_INDICES_OF_ANOTHER_RANK,
    HAS_INTEGER_LITERAL,
    HAS_KHRONOS_FILTER,
    HAS_LITERAL_BIAS,
    HAS_LOGICAL_LITERAL,
    HAS_MORE_THAN_TWO_AXES,
    IS_PADDED,
    IS_REDUCED_ALONG_NOTHING,
    Hazard,
    has_several_rows,
    hazard,
    is_negative,
    is_not,
    is_of,
    is_one_of,
)
from t2n_core.nnef.tract.quirks.quirk import by_operator
from t2n_core.nnef.tract.quirks.size_hazards import SIZE_HAZARDS

_NORMALIZATIONS: Final = (
    "local_response_normalization local_mean_normalization local_variance_normalization local_contrast_normalization"
)
HAZARDS: Final[tuple[Hazard, ...]] = (
    # -------------------------------------------------------------------------------------------------- sliding windows
    hazard(
        "box",
        (None, "0.23.5"),
        when=(is_not("normalize", True),),
        reason="the output is uninitialised memory",
        safe="`box` with `normalize = true`, times the volume of the window, without padding",
    ),
    hazard(
        "avg_pool rms_pool box",
        (None, "0.23.6"),
        when=(IS_PADDED, is_one_of("border", "constant")),
        reason="border `constant` is computed as border `ignore`",
        safe="`pad` with zeros, then pool without padding",
    ),
    hazard(
        _NORMALIZATIONS,
        (None, "0.23.6"),
        when=(IS_PADDED,),
        reason="their automatic padding is computed as border `ignore`",
        safe="primitives with an explicit `pad`",
    ),
    hazard(
        f"box avg_pool rms_pool max_pool {_NORMALIZATIONS}",
        when=(COVERS_BATCH_OR_CHANNELS,),
        reason="a window over the batch or channel axis sees one element only",
        safe="`transpose`, window over the last axes, `transpose` back",
    ),
    hazard(
        "max_pool",
        when=(IS_PADDED, is_one_of("border", "constant")),
        reason="border `constant` is computed as border `ignore`, which differs where all values are negative",
        safe="border `ignore`, or `pad` before it",
    ),
    hazard(
        "max_pool_with_index", reason="the index is not the one inside the window", safe="`max_pool` for the values"
    ),
    hazard(
        "debox",
        ("0.23.0", None),
        when=(is_one_of("normalize", True),),
        reason="wrong values",
        safe="`debox` without `normalize`, divided by the count",
    ),
    hazard(
        "box max_pool avg_pool rms_pool",
        when=(is_one_of("border", "replicate", "reflect", "reflect-even"),),
        reason="this border aborts the process",
        safe="`pad` with border `reflect` first; `concat` of edge slices for `replicate`",
    ),
    hazard(
        "conv separable_conv deconv debox",
        when=(is_not("border", "constant"),),
        reason="this border aborts the process",
        safe="`pad` with border `reflect` first; `concat` of edge slices for `replicate`",
    ),
    hazard(
        "conv separable_conv deconv",
        when=(is_negative("padding"),),
        reason="a negative padding aborts the process for some shapes",
        safe="`slice` first",
    ),
    hazard(
        "box max_pool avg_pool rms_pool",
        when=(is_negative("padding"),),
        reason="a negative padding aborts the process, or gives wrong values from 0.20.22",
        safe="`slice` first",
    ),
    hazard(
        "deconv",
        when=(HAS_KHRONOS_FILTER,),
        reason="the filter is not laid out as [out, in/groups, …], the only layout tract knows",
        safe="swap the first two axes of the filter, group by group",
    ),
    hazard(
        "conv deconv",
        when=(is_one_of("groups", 0),),
        reason="0 is not read as one group for each channel",
        safe="the number of channels",
    ),
    hazard(
        "conv",
        (None, "0.20.3"),
        when=(HAS_LITERAL_BIAS,),
        reason="the literal is added to the first channel only",
        safe="a variable with the bias of each channel",
    ),
    hazard(
        "deconv",
        (None, "0.21.0"),
        when=(HAS_LITERAL_BIAS,),
        reason="the literal is added to the first channel only, or refused",
        safe="a variable with the bias of each channel",
    ),
    # ----------------------------------------------------------------------------------------------------------- shapes
    hazard(
        "pad",
        when=(is_one_of("border", "replicate", "reflect-even", "ignore"),),
        reason="unsupported padding mode",
        safe="`concat` of edge slices",
    ),
    hazard("pad", when=(is_negative("padding"),), reason="a negative amount aborts the process", safe="`slice`"),
    hazard(
        "slice",
        when=(is_negative("stride"),),
        reason="a negative stride aborts the process or is refused",
        safe="`tract_core_gather` with descending indices",
    ),
    hazard(
        "tract_core_gather",
        (None, "0.20.19"),
        when=(HAS_INDICES_OF_ANOTHER_RANK,),
        reason="the indices are read along other axes: wrong elements, or the process ends",
        safe="indices of one axis, and a `reshape` of the result",
    ),
    hazard(
        "slice",
        (None, "0.19.6"),
        when=(is_negative("begin"),),
        reason="a negative `begin` is counted on another axis",
        safe="the true, non-negative bound",
    ),
    hazard(
        "slice",
        ("0.23.0", None),
        when=(is_negative("begin"),),
        reason="a negative `begin` is refused",
        safe="the true, non-negative bound",
    ),
    hazard(
        "slice",
        (None, "0.21.6"),
        when=(ENDS_BEYOND_EXTENT,),
        reason="an `end` beyond the extent is refused",
        safe="the true bound",
    ),
    hazard(
        "slice",
        ("0.23.0", None),
        when=(ENDS_BEYOND_EXTENT,),
        reason="an `end` beyond the extent is refused",
        safe="the true bound",
    ),
    hazard(
        "reshape",
        ("0.21.8", None),
        when=(is_one_of("shape", []),),
        reason="a reshape to rank 0 aborts the process or is refused",
        safe="`squeeze`",
    ),
    hazard(
        "tract_core_topk",
        (None, "0.21.10"),
        when=(HAS_MORE_THAN_TWO_AXES,),
        reason="other lines than those along the axis are sorted, or the process dies",
        safe="`reshape` to the rows of a matrix before",
    ),
    hazard(
        "tract_core_scan",
        when=(GOES_BACKWARDS_IN_CHUNKS,),
        reason="the outputs are uninitialised memory",
        safe="chunks of one, or the input in the reverse order",
    ),
    hazard(
        "mean_reduce",
        (None, "0.21.6"),
        ("0.23.5", None),
        when=(IS_REDUCED_ALONG_NOTHING,),
        reason="a mean along an axis without elements ends the process, from 0.23.5 on along the last axis only",
        safe="a variable of NaN",
    ),
    # --------------------------------------------------------------------------------------------------------- elements
    hazard(
        "softplus",
        reason="infinite for inputs above 88: it is computed as log(exp(x) + 1)",
        safe="max(x, 0) + log(1 + exp(-|x|))",
    ),
    hazard(
        "round",
        reason="rounds ties away from zero; the standard says floor(x + 0.5), PyTorch rounds them to even",
        safe="`tract_core_round_even`, or `floor`",
    ),
    hazard(
        "and or not select",
        (None, "0.19.8"),
        when=(HAS_LOGICAL_LITERAL,),
        reason="a literal operand is refused",
        safe="a variable",
    ),
    hazard(
        "add sub mul div pow min max eq ne lt gt le ge select",
        ("0.21.6", None),
        when=(HAS_INTEGER_LITERAL,),
        reason="an integer literal is a size expression: the result is one too, or the types do not fit",
        safe="a variable of the other operand's type",
    ),
    hazard(
        "matmul",
        when=(is_of("A", "uint8", "int16", "uint16", "uint32", "int64", "uint64"),),
        reason="a matrix product of this dtype aborts the process or is refused",
        safe="cast to float, or to int32 from 0.21.6",
    ),
    hazard(
        "matmul",
        (None, "0.21.6"),
        when=(is_of("A", "int32"),),
        reason="a matrix product of int32 aborts the process or is refused",
        safe="cast to float",
    ),
    hazard(
        "matmul",
        (None, "0.20.0"),
        when=(is_of("A", "int8"),),
        reason="a matrix product of int8 gives int32",
        safe="cast to float",
    ),
    hazard(
        "matmul",
        ("0.21.11", "0.21.13"),
        when=(is_of("A", "float64"),),
        reason="a matrix product of float64 aborts the process",
        safe="cast to float32",
    ),
    hazard(
        "matmul",
        ("0.21.6", "0.21.11"),
        when=(is_of("A", "int8"),),
        reason="a matrix product of int8 aborts the process",
        safe="cast to float",
    ),
    hazard(
        "tract_core_einsum",
        when=(is_of("inputs", "uint8", "int16", "uint16", "uint32", "int64", "uint64"),),
        reason="a matrix product of this dtype aborts the process or is refused",
        safe="cast to float, or to int32 from 0.21.6",
    ),
    hazard(
        "tract_core_einsum",
        (None, "0.21.6"),
        when=(is_of("inputs", "int32"),),
        reason="a matrix product of int32 aborts the process",
        safe="cast to float",
    ),
    hazard(
        "tract_core_einsum",
        (None, "0.21.13"),
        when=(is_of("inputs", "float16"), is_one_of("acc", "f32")),
        reason="float16 with a float32 accumulator aborts the process or is refused",
        safe="cast to float32 and back",
    ),
    hazard(
        "multilinear_upsample",
        when=(is_one_of("border", "constant"),),
        reason="this border is refused",
        safe="border `replicate`",
    ),
    # -------------------------------------------------------------------------------------------------------- attention
    hazard(
        "tract_transformers_window_kv_sdpa",
        ("0.23.1", None),
        when=(has_several_rows("q"),),
        reason="a query sees all keys of its call, later ones too, and keys that have left its window are lost",
        safe="products and `softmax` with a mask",
    ),
    hazard(
        "tract_transformers_quantized_kv_sdpa",
        ("0.23.3", None),
        reason="keys are rounded in steps of at least 1.0, so that keys of a channel that differ by less become equal",
        safe="products and `softmax` with a mask",
    ),
    *SIZE_HAZARDS,
)


@functools.cache
def hazards_of(version: Version) -> Mapping[str, tuple[Hazard, ...]]:
    """Return the hazards of a release, by operator."""
    return by_operator(HAZARDS, version)
