"""Long sizes of a check at which PyTorch's own float32 is too far from float64 to judge an engine by it."""

from __future__ import annotations

from dataclasses import replace

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import ROUNDING, Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import LONG_SIZES


def without_rounding(mismatch: Outcome, result: ExportedArchive, request: CheckRequest) -> Outcome:
    """Return a mismatch, or the outcome of the other samples if it is rounding at long sizes alone.

    There the engine is about as near to the model in float64 as PyTorch is; the record says how near both are.
    """
    failed = {name: one for name, one in result.long_samples.items() if one.sizes in mismatch.failed_sizes}
    if ROUNDING not in mismatch.facts or not all(
        any(sizes == one.sizes for one in failed.values()) for sizes in mismatch.failed_sizes
    ):
        return mismatch
    kept = [sample for sample in request.samples if sample.sizes not in mismatch.failed_sizes]
    outcome = check_parity(result.target.engine(), replace(request, samples=kept))
    words = mismatch.facts[ROUNDING]
    lines = [f"{line}: {words}" if name in failed else line for name, line in result.long_sizes.items()]
    return replace(outcome, facts={**outcome.facts, LONG_SIZES: lines})
