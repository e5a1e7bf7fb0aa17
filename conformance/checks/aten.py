"""Check the samples of one operator in one engine; the cell fails if one of them does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from conformance.checks.aten_outcomes import PASS, SECONDS_TO_EXPORT, SampleLine, sample_line, time_limit
from t2n_core.check.mismatch.rounding import ROUNDING
from t2n_core.engine.provision.known import newest_of_lines
from t2n_core.export.model import ModelExport
from t2n_core.inference_target import TractNNEF
from t2n_core.nnef.graph import constant_outputs
from t2n_core.parity.judging.judgement import DEFAULT_CRITERIA
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.parity.sensitivity import sensitivities

SECONDS_TO_RUN = 30
_TARGET = TractNNEF(newest_of_lines()[-1], check_io=False)
"""Writes the graphs that tell which outputs are constant."""


def check_samples(
    nnef_export: Callable[[ModelExport], Any], exports: Iterable[tuple[str, ModelExport]]
) -> list[SampleLine]:
    """Return the outcome of each sample, an error too, and note them in the matrix.

    A mismatch that is rounding passes. Samples whose pass is weak are noted only if no other proves the operator: some
    are empty, or of one choice.
    """
    lines, weak, noted = [], [], 0
    for sample_id, export in exports:
        try:
            with time_limit(SECONDS_TO_EXPORT):
                result = nnef_export(export)
                _ = result.samples
            outcome = result.check_parity("approximate", timeout=SECONDS_TO_RUN, note=False)
        except Exception as cause:
            outcome = Outcome.from_error(cause, "lower")
        else:
            outcome = _but_rounding(outcome)
            if outcome.status is Status.WEAK:
                weak.append((result, outcome))
            else:
                noted += 1
                result.note(outcome)
        lines.append(sample_line(sample_id, outcome))
    for result, outcome in weak if not noted else ():
        result.note(outcome)
    return lines


def _but_rounding(outcome: Outcome) -> Outcome:
    """Return the outcome; a mismatch that is rounding as a pass at the level that it reaches, with that as its fact.

    The database has samples of large condition number, for which float32 itself is the error: there, engine and PyTorch
    both differ from float64.
    """
    if outcome.status is Status.MISMATCH and outcome.level is not None and ROUNDING in outcome.facts:
        return replace(outcome, status=Status.PASS, error=None, failed_sizes=())
    return outcome


def proves_something(exports: Iterable[tuple[str, ModelExport]]) -> bool:
    """Return whether the outputs of a sample move, or are constant; or cannot be computed here, as its check says."""
    for _, export in exports:
        try:
            with time_limit(SECONDS_TO_EXPORT):
                graph = export.lower(_TARGET)
                names = [output.name for output in graph.outputs]
                moved = sensitivities(export.samples, names, DEFAULT_CRITERIA, constant_outputs(graph))
        except Exception:
            return True
        if not any(sensitivity.weak for sensitivity in moved):
            return True
    return False


def judge(lines: Sequence[SampleLine], left_out: Collection[str]) -> None:
    """Skips the cell without samples, fails the one with a sample that does not pass."""
    if not lines:
        pytest.skip(f"no usable sample: {', '.join(left_out) or 'PyTorch has none'}")
    failed = [sample for sample in lines if sample.result != PASS]
    if failed:
        text = "\n".join(f"{s.id}: {s.result}: {s.message}" for s in failed)
        pytest.fail(f"{len(failed)} of {len(lines)} samples do not pass\n{text}", pytrace=False)
