"""What is known of operators that fail where the model is decluttered, beyond what code generation alone gets wrong."""

from __future__ import annotations

from typing import Final

from conformance.dialect.known.entry import Known
from t2n_core.dialect.cases import Case


def _windows(case: Case) -> tuple[int, ...]:
    """Return the extents of the windows of a convolution, axis by axis."""
    name = "filter" if "filter" in case.arguments else "plane_filter"
    return tuple(case.arguments[name].shape[2:])


def _pads_a_stride_of_one_element(case: Case) -> bool:
    """Return whether an axis with a window of one element is padded and has a stride."""
    axes = zip(_windows(case), case.arguments["stride"], case.arguments["padding"], strict=False)
    return any(size == 1 and stride > 1 and any(padding) for size, stride, padding in axes)


def _pads_one_element(case: Case) -> bool:
    """Return whether windows of one element are padded."""
    return set(_windows(case)) == {1} and any(map(any, case.arguments["padding"]))


def _has_literal_bias(case: Case) -> bool:
    return isinstance(case.arguments.get("bias"), float)


DECLUTTERED: Final = (
    Known(
        ("conv", "separable_conv"),
        ("refused", "crashed"),
        "the stride of a window of one element is taken before the padding: another size, or a division by zero "
        "(`declutter_stride_slice_to_downsample`)",
        _pads_a_stride_of_one_element,
        before="0.20.18",
    ),
    Known(
        ("separable_conv",),
        ("refused",),
        "a window of one element becomes a product without its padding (`declutter_as_matmul`)",
        _pads_one_element,
        before="0.20",
    ),
    Known(
        ("separable_conv",),
        ("refused",),
        "a literal bias cannot take the shape of several channels where the points are a product "
        "(`declutter_as_einsum`)",
        _has_literal_bias,
        before="0.21",
    ),
)
"""Operators that fail on the path `declutter` alone."""
