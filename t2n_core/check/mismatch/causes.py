"""Causes of a mismatch found from capture and reference: a decision on a size, or an input that leads to NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from t2n_core.check.reference import Reference
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import sizes_text
from t2n_core.rewriter.context import without_rewrites
from t2n_core.torch_graph.constraints.narrowing import SizeDecision
from t2n_core.torch_graph.frontend.results import tensors_of

_NAN_IN_ENGINES = (
    "an engine need not carry NaN through an operator such as relu, clamp or max: avoid it in the model, or export for "
    "tract with keep_nan=True"
)


def with_causes(outcome: Outcome, reference: Reference, samples: Sequence[Sample]) -> Outcome:
    """Return the outcome of a mismatch with its known causes before its hint."""
    if outcome.error is None:
        return outcome
    captured = reference.captured
    decision = deciding([*captured.decisions, *captured.dropped], outcome.failed_sizes, outcome.sizes)
    causes = [] if decision is None else [f"it fails exactly where this does not hold: {decision}"]
    wrong = next((sample for sample in samples if sample.sizes in outcome.failed_sizes and _nan(sample.expected)), None)
    if wrong is not None:
        causes.append(_cause_of_nan(wrong, reference))
    base_hint = outcome.error.hint if wrong is None or outcome.level is not None else _NAN_IN_ENGINES
    hint = "; ".join([*causes, base_hint] if base_hint else causes)
    return replace(outcome, error=replace(outcome.error, hint=hint)) if causes else outcome


def deciding(
    decisions: Sequence[SizeDecision], failed: Sequence[Mapping[str, int]], checked: Sequence[Mapping[str, int]]
) -> SizeDecision | None:
    """Return the decision that is violated at exactly the sizes that failed; None if there is none."""
    passed = [sizes for sizes in checked if sizes not in failed]
    for decision in decisions:
        if failed and not any(map(decision.holds, failed)) and all(map(decision.holds, passed)):
            return decision
    return None


def _cause_of_nan(sample: Sample, reference: Reference) -> str:
    """Return a sentence with the input that makes PyTorch compute NaN: without NaN if it has the example's values.

    The model runs once for each input.
    """
    named_inputs = list(zip(reference.inputs.names, sample.inputs, strict=True))
    where = f" at {sizes_text([sample.sizes])}" if sample.sizes else ""
    fact = f"PyTorch itself computes NaN{where}"
    if sample.label == "example":
        odd = [f"`{name}`{remark}" for name, array in named_inputs if (remark := _suspicious(array))]
        return f"PyTorch itself computes NaN for the example{f': its input {odd[0]}' if odd else ''}"
    usual = [
        _enlarge(tensor.detach().cpu().numpy(), a.shape)
        for tensor, a in zip(reference.inputs.tensors, sample.inputs, strict=True)
    ]
    names = [
        f"`{name}`{_suspicious(array)}"
        for position, (name, array) in enumerate(named_inputs)
        if usual[position] is not None and _is_cured(reference, sample.inputs, position, usual[position])
    ]
    if not names:
        return f"{fact}, whichever input has the values of the example"
    return (
        f"{fact} because of the input {' or '.join(names)}: with the values of the example in its place there is none"
    )


def _enlarge(example: Any, shape: Sequence[int]) -> Any:
    """Return the example at other sizes, its elements repeated; None for an empty one."""
    if not example.size or example.ndim != len(shape):
        return None
    for axis, size in enumerate(shape):
        example = example.take(np.arange(size) % example.shape[axis], axis=axis)
    return example


def _is_cured(reference: Reference, inputs: Sequence[Any], position: int, usual: Any) -> bool:
    arrays = [usual if index == position else array for index, array in enumerate(inputs)]
    args, kwargs = reference.inputs.arguments_with([torch.from_numpy(np.array(array)) for array in arrays])
    try:
        with torch.no_grad(), without_rewrites():
            outputs = tensors_of(reference.source.run(args, kwargs))
    except Exception:
        return False
    return not _nan([output.detach().cpu().numpy() for output in outputs])


def _suspicious(array: Any) -> str:
    """Describe NaN or fully masked rows in an input; empty if there are none."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        return ", which holds NaN"
    if array.ndim and array.dtype.kind == "b" and (~array).all(-1).any():
        return ", which has rows that are all False"
    if array.ndim and array.dtype.kind == "f" and np.isneginf(array).all(-1).any():
        return ", which has rows that are all -inf"
    return ""


def _nan(arrays: Sequence[Any]) -> bool:
    return any(array.dtype.kind in "fc" and bool(np.isnan(array).any()) for array in arrays)
