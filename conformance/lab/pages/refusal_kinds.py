"""Five kinds of refusals, recognised by the message of a refusal or an expectation.

The support page groups refusals by them, and a test requires a kind for each refusal on record. A refusal without one
has not been accepted yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RARE = frozenset(
    """as_strided bfloat16 combinations ctc_loss fractional_max_pool2d fractional_max_pool3d frexp geqrf hash_tensor
    histogram histogramdd igamma igammac linalg_eigh linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve
    linalg_lstsq linalg_svd nextafter polygamma_ resize resize_ resize_as special_hermite_polynomial_h
    special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p special_zeta""".split()
)
"""Operators of PyTorch's database that none of the surveyed models uses."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its name, why such a refusal is accepted and what to do about it, and a pattern of its messages."""

    name: str
    reason: str
    messages: re.Pattern[str]


def _any(lines: str) -> re.Pattern[str]:
    return re.compile("|".join(line.strip() for line in lines.strip().splitlines()))


KINDS = (
    Kind(
        "random",
        "The operator draws random numbers. An archive gives the same outputs for the same inputs: make the numbers an "
        "input, or replace the call with a rewriter. Dropout is left out in evaluation: call `model.eval()`.",
        _any(
            """draws random numbers
            dropout is active"""
        ),
    ),
    Kind(
        "training",
        "The operator updates statistics or writes into its inputs, as layers do in training mode. Call `model.eval()` "
        "before the export.",
        _any(
            """training mode
            writes into its input
            is a result that .* cannot give"""
        ),
    ),
    Kind(
        "unknown shape",
        "How many results there are, or their shape, depends on values in a tensor, or on a size that is dynamic; or "
        "PyTorch itself fixes the size where it captures the operator. Keep all elements and choose: "
        "`torch.where(mask, x, 0)`; `nonzero_static` has a fixed number of results; keep an axis static whose size "
        "says how many pieces there are.",
        _any(
            r"""depends on (its|the) data
            (numbers|values) in (a tensor|tensors)
            depends on the numbers
            depends on (the|two) sizes?
            decides by a size
            axis .* is not free
            inferred a static shape
            unbacked symbols"""
        ),
    ),
    Kind(
        "not expressible",
        "The engine, or the standard, cannot express it at an acceptable cost: no float64, no float16 and no "
        "arithmetic of integers in NNEF 1.0, no convolution of integers in tract, no tensor without elements, no "
        "tables and unrolled loops that are too long.",
        _any(
            r"""has no dtype
            has dtype \w+, which
            does not compute with integers
            neither adds nor compares integers
            has one integer type
            real numbers alone
            extents are positive numbers
            without elements
            cannot be expressed in
            not supported (yet|in|where)
            elements of a dynamic axis is not supported
            NNEF( 1.0)? has no (operator|loop)
            has no operator `
            must be tensor<scalar>
            may wrap around
            is unrolled
            needs a fixed size
            there are too many
            too long
            a matrix product of this dtype
            cannot check
            which no other algorithm has
            its decomposition does not give"""
        ),
    ),
    Kind(
        "rare",
        "None of the surveyed models uses it, and it would take much code: it is in PyTorch's database of operators "
        "alone. Replace it with a rewriter, or add a rule.",
        _any(
            rf"""(no rule for |cannot capture .*|operator .*|^)aten(::|\.)_?({"|".join(sorted(RARE))})(?![a-z0-9])
            a view by strides
            modify sizes for customized tensor
            no model that was looked at uses it
            which no model uses"""
        ),
    ),
)
"""The first kind whose pattern matches a message is the kind of the refusal."""


def kind_of(message: str) -> Kind | None:
    """Return the kind of a refusal by its message, or None."""
    return next((kind for kind in KINDS if kind.messages.search(message)), None)
