"""What is known of cells that are not right: the operator, its releases, the cases, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from packaging.version import Version

from conformance.dialect.errata import erratum
from conformance.dialect.judge import Status, Verdict
from t2n_core.dialect.cases import Case
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.tract.quirks.quirk import Erratum


def _every(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Known:
    """Cases of operators that some releases compute wrongly, refuse or die of."""

    operators: tuple[str, ...]
    statuses: tuple[Status, ...]
    reason: str
    when: Callable[[Case], bool] = _every
    since: str | None = None
    before: str | None = None
    by_chance: bool = False
    """True for results that depend on what is in memory: a case may be right."""

    def explains(self, verdict: Verdict) -> bool:
        """Return whether a verdict that is not `right` is one of these."""
        return (
            verdict.case.op in self.operators
            and verdict.status in self.statuses
            and self.in_release(verdict.release)
            and self.when(verdict.case)
        )

    def in_release(self, release: str) -> bool:
        """Return whether this holds in a release."""
        return Version(release) in Releases.of(self.since, self.before)


def _infinite_line(case: Case) -> bool:
    """Return whether some line holds nothing but the infinity that a search begins with."""
    values, (axis,) = case.arguments["input"], case.arguments["axes"]
    worst = -np.inf if "argmax" in case.op else np.inf
    return bool((values == worst).all(axis=axis).any())


def _all_infinite(case: Case) -> bool:
    """Return whether a minimum or maximum is taken of the infinity alone that any element would replace."""
    values, axes = case.arguments["input"], tuple(case.arguments["axes"])
    worst = -np.inf if case.op == "max_reduce" else np.inf
    return bool((values == worst).all(axis=axes).any())


def _float16(case: Case) -> bool:
    return any(array.dtype == np.float16 for _, _, array in case.tensors())


def _has_nan(case: Case) -> bool:
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for _, _, array in case.tensors())


def _nan_of_float16(case: Case) -> bool:
    return _float16(case) and _has_nan(case)


def _ends_at_zero(case: Case) -> bool:
    return 0 in case.arguments["end"]


def _steps(case: Case) -> bool:
    return bool(case.arguments["q"].shape[2] > 1)


def _unread_trees(case: Case) -> bool:
    comparisons = case.arguments["nodes"][:, 4] & 0xFF
    return case.arguments["aggregate_fn"] in ("MAX", "MIN") or bool((comparisons == 6).any())


OF_THE_STANDARD: Final = (
    Known(("sigmoid", "tanh"), ("wrong",), "NaN becomes about 0, or -1", _has_nan),
    Known(
        ("min", "max", "clamp", "relu"),
        ("wrong",),
        "a NaN of float16 stays, that of float32 becomes the other operand",
        _nan_of_float16,
        before="0.22",
    ),
    Known(
        ("conv", "deconv", "separable_conv"),
        ("refused",),
        "float16 is refused in some shapes",
        _float16,
        before="0.21.5",
    ),
    Known(
        ("slice",),
        ("wrong", "refused"),
        "an `end` of 0 on a dynamic axis is the begin of the axis, not its end; in 0.23 on any axis",
        _ends_at_zero,
        since="0.21.5",
    ),
    Known(("sqr", "square"), ("refused",), "integers are refused", lambda case: case.arguments["x"].dtype.kind == "i"),
    Known(
        ("sign",),
        ("refused",),
        "integers are refused",
        lambda case: case.arguments["x"].dtype.kind == "i",
        before="0.23.5",
    ),
    Known(
        ("select",),
        ("refused",),
        "a literal has the type float32 alone",
        lambda case: not isinstance(case.arguments["false_value"], np.ndarray),
    ),
    Known(
        ("mean_reduce",),
        ("crashed",),
        "the mean along a dynamic axis that has no elements ends the process",
        lambda case: bool(case.dynamic) and case.arguments["input"].size == 0,
        since="0.23.5",
    ),
    Known(
        ("min_reduce", "max_reduce"),
        ("wrong",),
        "the minimum of +inf alone, or the maximum of -inf alone, is the largest or least finite value",
        _all_infinite,
    ),
)
"""Operators of the standard."""
OF_TRACT: Final = (
    Known(
        ("tract_core_argmax_reduce_last", "tract_core_argmin_reduce_last"),
        ("wrong",),
        "the index of a line of equal infinities is 0, not the last one: the search begins with the least finite value",
        _infinite_line,
    ),
    Known(
        ("tract_core_argmax_reduce_last", "tract_core_argmin_reduce_last", "tract_core_product_reduce"),
        ("refused",),
        "float16 is refused",
        _float16,
        before="0.21",
    ),
    Known(
        ("tract_core_erf", "tract_core_hard_swish", "tract_core_round_even", "tract_onnx_is_nan", "tract_onnx_isinf"),
        ("refused",),
        "float16 is refused",
        _float16,
        before="0.21",
    ),
    Known(
        ("tract_core_downsample",),
        ("refused", "crashed"),
        "a stride of 1 is taken for the identity, although `modulo` drops elements",
        lambda case: case.arguments["stride"] == 1 and bool(case.arguments.get("modulo")),
    ),
    Known(
        ("tract_core_silu", "tract_transformers_silu"),
        ("wrong",),
        "NaN becomes -6.5e-6",
        _has_nan,
        since="0.23",
    ),
    Known(
        ("tract_transformers_silu",),
        ("wrong",),
        "-inf stays -inf: its sigmoid is not 0",
        lambda case: bool(np.isneginf(case.arguments["x"]).any()),
        before="0.23",
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
    Known(
        ("tract_core_qconv",),
        ("refused",),
        "it needs `groups`, although its argument is `group`",
        before="0.23",
    ),
    Known(("tract_onnx_ml_reverse_lookup",), ("refused",), "it takes `keys` for `fallback` and `fallback` for `keys`"),
    Known(
        ("tract_onnx_ml_tree_ensemble_classifier",),
        ("wrong",),
        "`MAX` and `MIN` begin with 0; the comparison 6, >=, is taken for a leaf",
        _unread_trees,
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
        _steps,
    ),
    Known(
        ("tract_transformers_quantized_kv_sdpa",),
        ("wrong",),
        "the scales of keys begin at 1.0 and only grow",
        _steps,
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
    Known(("tract_core_range",), ("refused",), "its result is always size expressions", before="0.20"),
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
        before="0.23",
    ),
)
"""Operators of tract's registries."""
KNOWN: Final = (*OF_THE_STANDARD, *OF_TRACT)


def explanation(verdict: Verdict) -> Known | Erratum | None:
    """Return what is known of a verdict that is not `right`: an entry of this table or an erratum, or None."""
    known = next((one for one in KNOWN if one.explains(verdict)), None)
    return known or erratum(verdict.case, verdict.release)
