"""Operators of tract's registries that its releases are known to get wrong."""

from __future__ import annotations

from typing import Final

import numpy as np

from conformance.dialect.known.conditions import (
    has_float16,
    has_infinite_line,
    has_nan,
    has_negative_infinity,
    has_several_steps,
    has_unread_trees,
)
from conformance.dialect.known.entry import Known
from t2n_core.dialect.cases import Case


def _has_vector_of_parameters(case: Case) -> bool:
    names = ("bias", "a0", "b0", "c0", "a_scale", "b_scale", "c_scale")
    return any(case.arguments[name].ndim > 0 for name in names)


OF_TRACT: Final = (
    Known(
        ("tract_core_argmax_reduce_last", "tract_core_argmin_reduce_last"),
        ("wrong",),
        "the index of a line of equal infinities is 0, not the last one: the search begins with the least finite value",
        has_infinite_line,
    ),
    Known(
        ("tract_core_argmax_reduce_last", "tract_core_argmin_reduce_last", "tract_core_product_reduce"),
        ("refused",),
        "float16 is refused",
        has_float16,
        before="0.21",
    ),
    Known(
        ("tract_core_erf", "tract_core_hard_swish", "tract_core_round_even", "tract_onnx_is_nan", "tract_onnx_isinf"),
        ("refused",),
        "float16 is refused",
        has_float16,
        before="0.21",
    ),
    Known(
        ("tract_core_downsample",),
        ("refused", "crashed"),
        "a stride of 1 is taken for the identity, although `modulo` drops elements",
        lambda case: case.arguments["stride"] == 1 and bool(case.arguments.get("modulo")),
    ),
    Known(("tract_core_silu", "tract_transformers_silu"), ("wrong",), "NaN becomes -6.5e-6", has_nan, since="0.23"),
    Known(
        ("tract_core_silu", "tract_transformers_silu"),
        ("wrong",),
        "-inf gives -inf, +inf or NaN, not -0",
        has_negative_infinity,
        before="0.23.5",
    ),
    Known(
        ("tract_core_grid_sample", "tract_onnx_grid_sample"),
        ("wrong",),
        "`bicubic` with the border holds the place to the input before it is interpolated, not each neighbour",
        lambda case: (
            case.arguments.get("mode") == "bicubic"
            and case.arguments.get("padding_mode") == "border"
            and bool(case.arguments.get("align_corners"))
        ),
    ),
    Known(
        ("tract_core_gru_seq",),
        ("refused",),
        "one feature is refused: `xw not contiguous`",
        lambda case: case.arguments["x"].shape[2] == 1,
    ),
    Known(
        ("tract_core_resize", "tract_onnx_resize"),
        ("wrong",),
        "`pytorch_half_pixel` with one element in the result is at -0.5, not at 0",
        lambda case: (
            case.arguments.get("coord_transformer") == "pytorch_half_pixel"
            and case.arguments.get("interpolator") == "cubic"
        ),
    ),
    Known(
        ("tract_core_matmul",),
        ("wrong", "refused", "crashed"),
        "the columns of the second operand are taken for an axis of the first",
        since="0.20",
    ),
    Known(
        ("tract_core_matmul",),
        ("wrong", "refused"),
        "axes other than the last two in their order are refused or exchanged",
        lambda case: (
            sorted(case.arguments["axes"][:2]) != case.arguments["axes"][4:]
            or sorted(case.arguments["axes"][2:4]) != case.arguments["axes"][4:]
        ),
        before="0.20",
    ),
    Known(("tract_core_qmatmul",), ("refused",), "it needs an expression of nine operands, and makes one of two"),
    Known(
        ("tract_core_qconv",),
        ("refused",),
        "it reads `groups`, although its argument is `group`; without it each channel is a group of its own",
        since="0.23",
    ),
    Known(("tract_core_qconv",), ("refused",), "it needs `groups`, although its argument is `group`", before="0.23"),
    Known(("tract_onnx_ml_reverse_lookup",), ("refused",), "it takes `keys` for `fallback` and `fallback` for `keys`"),
    Known(
        ("tract_onnx_ml_tree_ensemble_classifier",),
        ("wrong",),
        "`MAX` and `MIN` begin with 0; the comparison 6, >=, is taken for a leaf",
        has_unread_trees,
    ),
    Known(
        ("tract_onnx_non_max_suppression",),
        ("wrong",),
        "0 boxes of each class are taken for all of them",
        lambda case: case.arguments["max_output_boxes_per_class"] == 0,
    ),
    Known(
        ("tract_transformers_window_kv_sdpa",),
        ("wrong",),
        "with several tokens in a step it is not causal: each query sees the last keys",
        has_several_steps,
    ),
    Known(
        ("tract_transformers_quantized_kv_sdpa",),
        ("wrong",),
        "the scales of keys begin at 1.0 and only grow",
        has_several_steps,
    ),
    Known(
        ("tract_transformers_sdpa",),
        ("wrong",),
        "the causal mask is aligned at the first key, not at the last one",
        lambda case: case.arguments["is_causal"] and case.arguments["q"].shape[-2] < case.arguments["k"].shape[-2],
        before="0.23",
    ),
    Known(
        ("tract_transformers_scaled_masked_softmax",),
        ("refused",),
        "only three axes are read",
        lambda case: case.arguments["input"].ndim != 3,
        before="0.23",
    ),
    Known(
        ("tract_core_stft",),
        ("wrong",),
        "a window that is shorter than the frame is at its begin, not in its middle",
        lambda case: "window" in case.arguments and len(case.arguments["window"]) < case.arguments["frame"],
        before="0.22",
    ),
    Known(
        ("tract_core_fft", "tract_core_stft"),
        ("refused",),
        "its input is complex, which no graph can be given",
        before="0.20",
    ),
    Known(("tract_core_range",), ("refused",), "its result is size expressions", before="0.20.19"),
    Known(
        ("tract_pulse_delay",),
        ("wrong",),
        "the frames ahead of the stream are uninitialised memory",
        lambda case: case.arguments["delay"] + case.arguments["overlap"] > 0,
        before="0.23",
        by_chance=True,
    ),
    Known(
        ("tract_pulse_pulse_pad",),
        ("crashed",),
        "the border `replicated` on another axis than the first aborts",
        lambda case: case.arguments["border"] == "replicated" and case.arguments["axis"] > 0,
        before="0.23.6",
    ),
    Known(
        ("tract_core_einsum",),
        ("refused",),
        "a product that is summed over two axes of both operands is refused: `Multiple k-axis candidate found`",
        lambda case: case.arguments["expr"] == "bij,bij->b",
        since="0.20.5",
        before="0.21.12",
    ),
    Known(
        ("tract_core_einsum_q",),
        ("refused",),
        "a vector of scales, offsets or biases is refused",
        _has_vector_of_parameters,
        before="0.20.18",
    ),
    Known(
        ("tract_core_gather",),
        ("refused",),
        "indices of int32 are refused",
        lambda case: case.arguments["indices"].dtype == np.int32,
        since="0.21.2",
        before="0.21.3",
    ),
    Known(("tract_core_matmul",), ("timed out",), "the optimiser does not end", since="0.20.5", before="0.20.18"),
    Known(
        ("tract_core_topk",),
        ("refused",),
        "keys are read as float32",
        lambda case: case.arguments["input"].dtype != np.float32,
        before="0.21",
    ),
    Known(
        ("tract_extra_exp_unit_norm",),
        ("wrong",),
        "the norm of elements that are not complex is another one",
        lambda case: not case.arguments.get("complex"),
        before="0.20.22",
    ),
    Known(
        ("tract_core_resize", "tract_onnx_resize"),
        ("refused",),
        "`half_pixel_symmetric` and `tf_half_pixel_for_nn` are refused",
        lambda case: case.arguments.get("coord_transformer") in ("half_pixel_symmetric", "tf_half_pixel_for_nn"),
        before="0.23.5",
    ),
    Known(
        ("tract_core_resize", "tract_onnx_resize"),
        ("wrong",),
        "with `scales`, elements are at other places in some modes",
        lambda case: "scales" in case.arguments,
        before="0.23.5",
    ),
    Known(
        (
            *("tract_transformers_causal_conv1d_update", "tract_transformers_gdn_recurrent"),
            *("tract_qwen35_causal_conv1d_update", "tract_qwen35_gdn_recurrent"),
        ),
        ("refused",),
        "only float16 is taken, and only a filter of four taps",
        before="0.23.7",
    ),
    Known(
        ("tract_transformers_silu",),
        ("wrong",),
        "the sigmoid of float16 does not come close to 0",
        has_float16,
        before="0.23",
    ),
)
"""Operators of tract's registries."""
