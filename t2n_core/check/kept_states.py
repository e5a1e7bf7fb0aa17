"""Calls in States that are kept, as servers make them: what one call leaves behind must not change the next.

They are compared with calls of the same inputs in a fresh State, whatever PyTorch computes: an engine computes the same
elements each time, so that the level is a tight one, and not that of the check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.check.comparison import OutputComparison, compare_outputs
from t2n_core.check.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.check.samples import Sample
from t2n_core.check.table import sizes_text
from t2n_core.engine.protocol import ChangedCall, EngineReply
from t2n_core.engine.tract.out_of_range import graph_text
from t2n_core.errors import SecondCallError

Call = tuple[int, int]
"""The number of a State, and the index of a sample."""
KEPT_CALLS = "kept_calls"
"""Fact of the outcome: the number of calls in kept States."""
_LEVEL = "close"
_SCAN = "tract_core_scan("
_HINT = "a server that keeps a State gets these: call the archive in a fresh State each time, or export it anew"


def planned_calls(samples: Sequence[Sample], *, resized: bool = True) -> tuple[Call, ...]:
    """Return calls that repeat the smallest sample in two States, with other inputs and other sizes in between.

    Without `resized` all calls of a State have the same sizes.
    """
    order = sorted(range(len(samples)), key=lambda index: sum(array.size for array in samples[index].inputs))
    first, *others = order
    shapes = [tuple(array.shape for array in sample.inputs) for sample in samples]
    alike = next((index for index in others if shapes[index] == shapes[first]), None)
    other = next((index for index in others if resized and shapes[index] != shapes[first]), None)
    between = next((index for index in (alike, other) if index is not None), first)
    calls = [(0, first), (1, between), (0, first), (1, first)]
    return (*calls, *(() if other is None else ((0, other), (0, first))))


def keeps_states(engine: Any, archive: Path) -> bool:
    """Return whether an engine runs calls in kept States, and the archive can ask it to begin each scan anew."""
    if not hasattr(engine, "resets_scans"):
        return False
    return bool(engine.resets_scans) or _SCAN not in graph_text(archive)


def judge_kept_calls(found: Outcome, reply: EngineReply, calls: Sequence[Call], samples: Sequence[Sample]) -> Outcome:
    """Return a pass as it is, with the number of calls, or the mismatch of the first call that gave other outputs."""
    found = replace(found, facts={**found.facts, KEPT_CALLS: len(calls)})
    for changed in reply.changed:
        index = calls[changed.call][1]
        if changed.message:
            return _mismatch(found, samples[index], changed, calls, f"fails: {changed.message}", found.outputs)
        names = [output.name for output in found.outputs]
        compared = compare_outputs(reply.outputs[index], changed.outputs, names=names, tolerance=_LEVEL)
        bad = [output.name for output in compared if not output.passed]
        if bad:
            what = f"gives other outputs than the same inputs in a fresh State: {', '.join(bad)}"
            return _mismatch(found, samples[index], changed, calls, what, tuple(compared))
    return found


def _mismatch(
    found: Outcome,
    sample: Sample,
    changed: ChangedCall,
    calls: Sequence[Call],
    what: str,
    outputs: tuple[OutputComparison, ...],
) -> Outcome:
    number = calls[changed.call][0]
    earlier = sum(state == number for state, _ in calls[: changed.call])
    at = f" at {sizes_text([sample.sizes])}" if sample.sizes else ""
    message = f"call {earlier + 1} in one State{at} {what}"
    error = ErrorInfo.of(Stage.COMPARE, SecondCallError.__name__, message, hint=_HINT)
    return replace(
        found,
        status=Status.MISMATCH,
        stage=Stage.COMPARE,
        level=None,
        outputs=outputs,
        failed_sizes=(sample.sizes,),
        error=error,
    )


def last_kept_call(reply: EngineReply) -> EngineReply:
    """Return the reply with the outputs of the last changed call in place of those of its batch, if there is one."""
    outputs = next((one.outputs for one in reversed(reply.changed) if one.outputs), None)
    return reply if outputs is None else replace(reply, outputs=(tuple(map(np.asarray, outputs)),))


REPEATED: tuple[Call, ...] = ((0, 0), (0, 0))
"""Calls that repeat the only batch in one State."""

__all__ = ["KEPT_CALLS", "REPEATED", "Call", "judge_kept_calls", "keeps_states", "last_kept_call", "planned_calls"]
