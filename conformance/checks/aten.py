"""Checks the samples of one operator in one engine; the cell fails if one of them does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from conformance.checks.aten_outcomes import PASS, SECONDS_TO_EXPORT, SampleLine, limited, sample_line
from t2n_core.check.outcome import Outcome
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult

SECONDS_TO_RUN = 30


def check_sample(sample_id: str, nnef_export: Callable[[ModelExport], ExportResult], export: ModelExport) -> SampleLine:
    """Return the outcome of one sample; an error is one too."""
    try:
        with limited(SECONDS_TO_EXPORT):
            result = nnef_export(export)
            _ = export.samples
        outcome = result.check_parity("approximate", timeout=SECONDS_TO_RUN)
    except Exception as cause:
        outcome = Outcome.from_error(cause, "lower")
    return sample_line(sample_id, outcome)


def judge(lines: Sequence[SampleLine], left_out: Collection[str]) -> None:
    """Skips the cell without samples, fails the one with a sample that does not pass."""
    if not lines:
        pytest.skip(f"no usable sample: {', '.join(left_out) or 'PyTorch has none'}")
    failed = [sample for sample in lines if sample.result != PASS]
    if failed:
        text = "\n".join(f"{s.id}: {s.result}: {s.message}" for s in failed)
        pytest.fail(f"{len(failed)} of {len(lines)} samples do not pass\n{text}", pytrace=False)
