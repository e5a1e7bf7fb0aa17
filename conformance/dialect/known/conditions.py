"""Conditions on cases of operators."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.cases import Case


def has_infinite_line(case: Case) -> bool:
    """Return whether some line holds nothing but the infinity that a search begins with."""
    values, (axis,) = case.arguments["input"], case.arguments["axes"]
    worst = -np.inf if "argmax" in case.op else np.inf
    return bool((values == worst).all(axis=axis).any())


def reduces_infinity_alone(case: Case) -> bool:
    """Return whether a minimum or maximum reduces only the infinity that any element would replace."""
    values, axes = case.arguments["input"], tuple(case.arguments["axes"])
    worst = -np.inf if case.op == "max_reduce" else np.inf
    return bool((values == worst).all(axis=axes).any())


def has_float16(case: Case) -> bool:
    """Return whether a tensor is of float16."""
    return any(array.dtype == np.float16 for _, _, array in case.tensors())


def has_nan(case: Case) -> bool:
    """Return whether a tensor has a NaN."""
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for _, _, array in case.tensors())


def has_nan_of_float16(case: Case) -> bool:
    """Return whether a tensor is of float16, and one has a NaN."""
    return has_float16(case) and has_nan(case)


def ends_at_zero(case: Case) -> bool:
    """Return whether an end of a slice is 0."""
    return 0 in case.arguments["end"]


def has_several_steps(case: Case) -> bool:
    """Return whether a step has several tokens."""
    return bool(case.arguments["q"].shape[2] > 1)


def has_unread_trees(case: Case) -> bool:
    """Return whether trees are combined, or their nodes compared, in a way that is not read."""
    comparisons = case.arguments["nodes"][:, 4] & 0xFF
    return case.arguments["aggregate_fn"] in ("MAX", "MIN") or bool((comparisons == 6).any())


def has_negative_infinity(case: Case) -> bool:
    """Return whether a tensor has an element of -inf."""
    return any(array.dtype.kind == "f" and bool(np.isneginf(array).any()) for _, _, array in case.tensors())


def is_dynamic(case: Case) -> bool:
    """Return whether an axis of an input is dynamic."""
    return bool(case.dynamic)
