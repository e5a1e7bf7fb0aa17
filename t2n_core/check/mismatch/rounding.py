"""Tell rounding from a wrong result: compare the engine's errors against float64 with PyTorch's in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from t2n_core.check.reference import Reference
from t2n_core.engine.protocol import Engine
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import ROUNDING, Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample

_ROOT_MEAN_SQUARE = 2.0
"""Largest error of an engine relative to PyTorch's, as PyTorch's own tests of its compiler allow it."""
_LARGEST = 4.0
"""The same for single elements: one wrong value among many changes the mean little, and this a lot."""


@dataclass(slots=True)
class _Errors:
    """Errors of one output in one sample, against float64."""

    largest: float
    root_mean_square: float
    scale: float
    """The largest value of the output."""

    @classmethod
    def of(cls, actual: Array, right: Array) -> _Errors:
        """Return the errors where an output is finite; elsewhere both must be equal, or the errors are NaN."""
        finite = np.isfinite(right)
        if not np.array_equal(actual[~finite], right[~finite], equal_nan=True):
            return cls(np.nan, np.nan, np.nan)
        error = np.abs(actual[finite].astype(np.float64) - right[finite])
        largest, scale = (float(np.abs(x).max(initial=0.0)) for x in (error, right[finite]))
        return cls(largest, float(np.sqrt(np.square(error).mean())) if error.size else 0.0, scale)

    def is_near(self, other: _Errors) -> bool:
        """Return whether these errors are about as large as the others; False for NaN."""
        few = self.root_mean_square <= _ROOT_MEAN_SQUARE * other.root_mean_square
        return few and self.largest <= _LARGEST * other.largest


def note_rounding(mismatch: Outcome, engine: Engine, request: CheckRequest, reference: Reference) -> Outcome:
    """Return the outcome of a mismatch; if it is rounding, with that as its hint, and as the fact `rounding`.

    It is rounding if for every failed output the engine is about as near to the model in float64 as PyTorch is in
    float32. The engine runs once more at the failed sizes.
    """
    failed = [sample for sample in request.samples if sample.sizes in mismatch.failed_sizes]
    try:
        reply = engine.run(request.archive, [sample.inputs for sample in failed], timeout=request.timeout)
        errors = [
            pair
            for sample, answer in zip(reference.in_float64(failed, keep=True), reply.outputs, strict=True)
            for pair in _errors(sample, answer, request.criteria)
        ]
    except Exception:  # without a model in float64, or a second answer, the cause is unknown
        return mismatch
    if (
        reply.status != "ok"
        or mismatch.error is None
        or not errors
        or not all(of_engine.is_near(of_pytorch) for of_engine, of_pytorch in errors)
    ):
        return mismatch
    of_engine, of_pytorch = max(errors, key=lambda pair: pair[0].largest)
    words = (
        f"the difference is rounding: the engine is {of_engine.largest:.2g} off the model in float64, and PyTorch in "
        f"float32 is {of_pytorch.largest:.2g} off, of values up to {of_pytorch.scale:.2g}"
    )
    return replace(mismatch, error=replace(mismatch.error, hint=words), facts={**mismatch.facts, ROUNDING: words})


def _errors(sample: Sample, answer: Sequence[Array], criteria: Judgement) -> list[tuple[_Errors, _Errors]]:
    """Return the errors of the engine and of PyTorch in the outputs of a sample that fail.

    Raises ValueError if shapes or values other than floats differ.
    """
    errors = []
    compared = compare_outputs(sample.expected, answer, criteria=criteria)
    for result, single, right, answered in zip(compared, sample.expected, sample.reference, answer, strict=True):
        if result.passed:
            continue
        if single.shape != answered.shape or single.dtype.kind != "f":
            raise ValueError(f"{result.name} differs by more than rounding")
        errors.append((_Errors.of(answered, right), _Errors.of(single, right)))
    return errors
