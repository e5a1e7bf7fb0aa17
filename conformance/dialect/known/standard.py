"""Operators of the standard that releases of tract are known to get wrong."""

from __future__ import annotations

from typing import Final

import numpy as np

from conformance.dialect.known.conditions import (
    ends_at_zero,
    has_float16,
    has_nan,
    has_nan_of_float16,
    is_dynamic,
    reduces_infinity_alone,
)
from conformance.dialect.known.entry import Known

REFUSING_FLOAT16: Final = {
    "0.20.18": "elu eq ge gt le lt ne pad prelu",
    "0.20.19": "leaky_relu",
    "0.21": "argmax_reduce argmin_reduce max_reduce min_reduce pow rsqr",
}
"""Operators that refuse float16 before a release."""
OF_THE_STANDARD: Final = (
    *(
        Known((operator,), ("refused",), "float16 is refused", has_float16, before=before)
        for before, operators in REFUSING_FLOAT16.items()
        for operator in operators.split()
    ),
    Known(
        ("conv",),
        ("crashed",),
        "some windows over two axes of a dynamic batch end the process",
        lambda case: case.arguments["input"].ndim == 4 and is_dynamic(case),
        before="0.20.18",
    ),
    Known(
        ("conv", "separable_conv"),
        ("refused",),
        "a size of a dynamic axis stays a symbol in the product: `Undetermined symbol in expression`",
        is_dynamic,
        since="0.21",
        before="0.21.5",
    ),
    Known(
        ("deconv",),
        ("refused",),
        "a literal bias of one channel is refused",
        lambda case: isinstance(case.arguments.get("bias"), float),
        since="0.20.20",
        before="0.21",
    ),
    Known(
        ("separable_conv",),
        ("wrong",),
        "the size of a dynamic axis of the image is rounded up, not down",
        is_dynamic,
        since="0.20.19",
        before="0.21",
    ),
    Known(
        ("separable_conv",),
        ("crashed",),
        "memory is damaged where an axis of the image has one element",
        lambda case: 1 in case.arguments["input"].shape[2:],
        since="0.19.8",
        before="0.19.11",
        by_chance=True,
    ),
    Known(("sigmoid", "tanh"), ("wrong",), "NaN becomes about 0, or -1", has_nan),
    Known(
        ("min", "max", "clamp", "relu"),
        ("wrong",),
        "a NaN of float16 stays, that of float32 becomes the other operand",
        has_nan_of_float16,
        before="0.22",
    ),
    Known(
        ("conv", "deconv", "separable_conv"),
        ("refused",),
        "float16 is refused in some shapes",
        has_float16,
        before="0.21.5",
    ),
    Known(
        ("slice",),
        ("wrong", "refused"),
        "an `end` of 0 on a dynamic axis is the begin of the axis, not its end; in 0.23 on any axis",
        ends_at_zero,
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
        reduces_infinity_alone,
    ),
)
"""Operators of the standard."""
