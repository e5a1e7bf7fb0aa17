"""What is known of operators that tract's CUDA runtime gets wrong, beyond what it gets wrong on the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from conformance.dialect.known.conditions import has_float16, has_nan, has_negative_infinity, is_dynamic
from conformance.dialect.known.entry import Known
from t2n_core.dialect.cases import Case


def _has_kind(kinds: str) -> Callable[[Case], bool]:
    """Return a condition on cases: a tensor is of one of these kinds of dtypes, in numpy's letters."""
    return lambda case: any(array.dtype.kind in kinds for _, _, array in case.tensors())


def _has_several_axes(case: Case) -> bool:
    return len(case.arguments["axes"]) > 1


def _has_one_bias(case: Case) -> bool:
    return np.ndim(case.arguments.get("bias", 0.0)) == 0


def _accumulates_in_float32(case: Case) -> bool:
    return case.arguments["acc"] == "f32" and has_float16(case)


def _leaves_the_range(case: Case) -> bool:
    return case.arguments["to"] == "u16" and bool((case.arguments["input"] > np.iinfo(np.uint16).max).any())


def _has_other_than_four_taps(case: Case) -> bool:
    return bool(case.arguments["weight"].shape[1] != 4)


def _pads_with_an_edge(case: Case) -> bool:
    return case.arguments.get("border") == "replicated"


ON_CUDA: Final = (
    Known(("conv",), ("refused",), "one value as the bias of several channels is refused", _has_one_bias),
    Known(
        ("matmul", "tract_core_matmul", "tract_core_einsum"),
        ("refused",),
        "the products of integers are left to an operator that takes floats only",
        _has_kind("iu"),
    ),
    Known(("matmul",), ("refused",), "a dynamic inner axis is refused", is_dynamic, before="0.23.5"),
    Known(("sign",), ("wrong",), "the sign of NaN is 0", has_nan),
    Known(
        ("softmax", "tract_core_softmax", "tract_core_log_softmax"),
        ("refused",),
        "a softmax along several axes is refused",
        _has_several_axes,
    ),
    Known(("tract_core_log_softmax",), ("wrong",), "the result is the softmax, not its logarithm"),
    Known(
        ("tract_core_bitand", "tract_core_bitor", "tract_core_bitxor"),
        ("refused",),
        "there is no kernel for booleans",
        _has_kind("b"),
    ),
    Known(
        ("tract_core_cast",),
        ("wrong",),
        "a float beyond the range of uint16 wraps around and does not become the largest value",
        _leaves_the_range,
    ),
    Known(
        ("tract_core_einsum",),
        ("wrong",),
        "float16 is accumulated in float16, although f32 is asked for",
        _accumulates_in_float32,
    ),
    Known(
        ("tract_core_einsum_q", "tract_core_qconv"), ("wrong",), "quantised products have other values", before="0.23.5"
    ),
    Known(
        ("tract_core_silu", "tract_transformers_silu"),
        ("wrong",),
        "the silu of -inf is NaN",
        has_negative_infinity,
        since="0.23.5",
    ),
    Known(("tract_pulse_pulse_pad",), ("wrong",), "an edge is repeated wrongly", _pads_with_an_edge, before="0.23.6"),
    Known(
        ("tract_qwen35_causal_conv1d_update", "tract_transformers_causal_conv1d_update"),
        ("refused",),
        "a convolution has four taps",
        _has_other_than_four_taps,
        since="0.23.7",
    ),
    Known(
        ("tract_transformers_sdpa",), ("refused",), "the width of a head is one of a few, such as 64", before="0.23.8"
    ),
)
