"""Rows of a dynamic batch: the outputs of one row must not depend on the other rows.

A batch is a dynamic axis that is the first one of all inputs and outputs. One sample runs again with some of its rows
kept and the others replaced: in the same job, with the same shapes and so the same kernels, so the level is tight, and
not the check's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import RowsError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.comparison import OutputComparison, compare_outputs
from t2n_core.parity.further_runs.batches import SelfComparison
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import Answer, CheckRequest
from t2n_core.parity.samples import Array, Sample
from t2n_core.parity.table import sizes_text

KEPT_ROWS = "kept_rows"
"""Fact of the outcome: the number of rows that were compared while others were replaced."""
ROWS = "rows"
"""Fact of the outcome: why rows that depend on each other are not a mismatch."""
DEPENDENT = "dependent in the model"
UNKNOWN = "dependent in the engine, without a model to ask"
_CRITERIA = Judgement(TractCheckTolerance.CLOSE)
_HINT = "the rows of the model are independent: run one row at a time, or export it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRows(SelfComparison):
    """The inputs of a sample with all rows replaced except some."""

    sample: int
    """The index of the sample."""
    kept: tuple[int, ...]
    """The rows kept from the sample, at the same indices."""

    def judge(self, outcome: Outcome, request: CheckRequest, reply: EngineReply, further_reply: EngineReply) -> Outcome:
        """Return a pass with facts added, or the mismatch of outputs that changed with other rows.

        `further_reply` is the engine's reply to the replaced rows. The model runs only if the engine's rows depend on
        each other.
        """
        sample, model = request.samples[self.sample], request.model
        facts = {**outcome.facts, KEPT_ROWS: len(self.kept)}
        names = [output.name for output in outcome.outputs]
        compared: tuple[OutputComparison, ...] = outcome.outputs
        if further_reply.status == "ok":
            compared = _compare(reply.outputs[self.sample], further_reply.outputs[0], self.kept, names)
            bad = [output.name for output in compared if not output.passed]
            if not bad:
                return replace(outcome, facts=facts)
            problem = f"gives other outputs when the other rows change: {', '.join(bad)}"
        else:
            problem = f"fails when the other rows change: {further_reply.message}"
        if model is None:
            return replace(outcome, facts={**facts, ROWS: UNKNOWN})
        if _depends(model, sample.inputs, self):
            return replace(outcome, facts={**facts, ROWS: DEPENDENT})
        at = f" at {sizes_text([sample.sizes])}"
        return replace(outcome, facts=facts).as_mismatch(
            RowsError, f"a row of the batch{at} {problem}", outputs=compared, failed_sizes=(sample.sizes,), hint=_HINT
        )


def replace_rows(samples: Sequence[Sample]) -> ReplacedRows | None:
    """Return the smallest sample of three rows or more with replaced rows, otherwise one of two rows.

    The other rows come from another sample, of the same sizes if there is one. None for samples without a batch, or
    if no row would change.
    """
    symbol = _batch_symbol(samples)
    if symbol is None:
        return None
    counts = [sample.sizes[symbol] for sample in samples]
    elements = [sum(math.prod(array.shape) for array in sample.inputs) for sample in samples]
    for index in sorted(range(len(samples)), key=lambda index: (counts[index] < 3, elements[index])):
        rows = counts[index]
        if rows < 2:
            continue
        kept_rows = tuple(range(1, max(2, rows - 1), 3))
        for other in _donors(index, samples):
            inputs = tuple(
                _replace(*pair, kept_rows) for pair in zip(samples[index].inputs, samples[other].inputs, strict=True)
            )
            if not all(map(_are_equal, inputs, samples[index].inputs)):
                return ReplacedRows(batches=[inputs], sample=index, kept=kept_rows)
    return None


def _batch_symbol(samples: Sequence[Sample]) -> str | None:
    """Return the name of the size that is the first axis of all inputs and outputs in all samples."""
    for name in samples[0].sizes:
        sizes = [sample.sizes.get(name) for sample in samples]
        arrays = [[*sample.inputs, *sample.expected] for sample in samples]
        fits = all(a.ndim and a.shape[0] == size for size, group in zip(sizes, arrays, strict=True) for a in group)
        if fits and len(set(sizes)) > 1:
            return name
    return None


def _donors(index: int, samples: Sequence[Sample]) -> list[int]:
    """Return the samples whose rows fit into this one, samples of the same sizes first."""
    shapes = [[array.shape[1:] for array in sample.inputs] for sample in samples]
    lends = [all(len(array) for array in sample.inputs) for sample in samples]
    others = [o for o in range(len(samples)) if o != index and lends[o] and shapes[o] == shapes[index]]
    return sorted(others, key=lambda other: samples[other].sizes != samples[index].sizes)


def _replace(array: Array, other: Array, kept_rows: Sequence[int]) -> Array:
    changed = np.ascontiguousarray(other[np.arange(len(array)) % len(other)]).astype(array.dtype, copy=False)
    changed[list(kept_rows)] = array[list(kept_rows)]
    return changed


def _are_equal(array: Array, other: Array) -> bool:
    return np.array_equal(array, other, equal_nan=array.dtype.kind in "fc")


def _compare(
    before: Sequence[Array], after: Sequence[Array], kept_rows: Sequence[int], names: Sequence[str]
) -> tuple[OutputComparison, ...]:
    places = list(kept_rows)
    if any(not array.ndim or len(array) <= places[-1] for array in after):
        return tuple(compare_outputs(before, after, names=names, criteria=_CRITERIA))
    expected, other = ([np.ascontiguousarray(array[places]) for array in arrays] for arrays in (before, after))
    return tuple(compare_outputs(expected, other, names=names, criteria=_CRITERIA))


def _depends(model: Answer, inputs: Sequence[Array], plan: ReplacedRows) -> bool:
    """Return whether rows of the model also depend on each other, or the model refuses the replaced rows."""
    try:
        before, after = model(inputs), model(plan.batches[0])
    except Exception:
        return True
    return not all(output.passed for output in _compare(before, after, plan.kept, ()))
