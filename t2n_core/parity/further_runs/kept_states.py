"""Repeated calls in one State, as in servers: a call must not change the outputs of the next.

They are compared with calls of the same inputs in a fresh State, independent of PyTorch: an engine computes the same
elements each time, so the level is tight, and not the check's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from t2n_core.engine.protocol import EngineReply, KeptStates
from t2n_core.engine.tract.out_of_range import graph_text
from t2n_core.errors import SecondCallError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.comparison import OutputComparison, compare_outputs
from t2n_core.parity.further_runs.batches import Call, SelfComparison
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import sizes_text

KEPT_CALLS = "kept_calls"
"""Fact of the outcome: the number of calls in States that had run before."""
REPEATED: tuple[Call, ...] = ((0, 0),)
"""The call that repeats the only sample in its State."""
_CRITERIA = Judgement(TractCheckTolerance.CLOSE)
_SCAN = "tract_core_scan("
_KEEPS = re.compile(r"\b(?:tract_core_scan|tract_core_gru_seq|tract_pulse_\w+|tract_\w*kv_cache\w*)\(")
"""Operators that have a state, in the text of a graph."""
_STATEFUL = re.compile(r"\b(tract_core_scan|tract_core_gru_seq|tract_pulse_\w+|tract_\w*kv_cache\w*)\([^;]*;")
_LOOPS = ("tract_core_scan", "tract_core_gru_seq")
_RESETS = re.compile(r"\breset_every_turn = (?:1|true)\b")
_HINT = "a server that keeps a State gets these: call the archive in a fresh State each time, or export it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCalls(SelfComparison):
    """Calls in States that have run before."""

    def judge(self, outcome: Outcome, request: CheckRequest, reply: EngineReply, further_reply: EngineReply) -> Outcome:
        """Return a pass with the number of calls added, or the mismatch of the first one with other outputs."""
        outcome = replace(outcome, facts={**outcome.facts, KEPT_CALLS: len(self.calls)})
        if further_reply.status != "ok":
            return _mismatch(
                outcome, request.samples[self.calls[0][1]], f"fails: {further_reply.message}", outcome.outputs
            )
        for changed in reply.changed:
            index = self.calls[changed.call][1]
            sample = request.samples[index]
            if changed.message:
                return _mismatch(outcome, sample, f"fails: {changed.message}", outcome.outputs)
            names = [output.name for output in outcome.outputs]
            compared = compare_outputs(reply.outputs[index], changed.outputs, names=names, criteria=_CRITERIA)
            bad = [output.name for output in compared if not output.passed]
            if bad:
                problem = f"gives other outputs than the same inputs in a fresh State: {', '.join(bad)}"
                return _mismatch(outcome, sample, problem, tuple(compared))
        return outcome


def plan_calls(states: KeptStates, archive: Path, samples: Sequence[Sample]) -> KeptCalls | None:
    """Return the calls of a check in States that have run before.

    The smallest sample runs again after another size, or after other inputs if there is none. In an archive with
    stateful operators, the smallest that shares its sizes with another runs after itself, after other inputs and after
    another size. None if the release always keeps the states of scans.
    """
    try:
        text = graph_text(archive)
    except (OSError, ValueError):  # the engine reports the problem
        text = ""
    if not states.resets_scans and _SCAN in text:
        return None
    shapes = [tuple(array.shape for array in sample.inputs) for sample in samples]
    order = sorted(range(len(samples)), key=lambda index: sum(map(math.prod, shapes[index])))
    keeps = _KEEPS.search(text) is not None
    shared = next((index for index in order if shapes.count(shapes[index]) > 1), order[0])
    first = shared if keeps or not states.resizes else order[0]
    alike = [index for index in order if index != first and shapes[index] == shapes[first]][:1]
    resized = [index for index in order if states.resizes and shapes[index] != shapes[first]][:1]
    before = [first, *alike, *resized]
    return KeptCalls(calls=tuple((index, first) for index in (before if keeps else before[-1:])))


def keeps_state(text: str) -> bool:
    """Return whether a graph asks for a state that lasts from call to call: a loop that does not restart, a cache."""
    return any(match[1] not in _LOOPS or not _RESETS.search(match[0]) for match in _STATEFUL.finditer(text))


def _mismatch(outcome: Outcome, sample: Sample, problem: str, outputs: tuple[OutputComparison, ...]) -> Outcome:
    at = f" at {sizes_text([sample.sizes])}" if sample.sizes else ""
    message = f"the second call in one State{at} {problem}"
    return outcome.as_mismatch(SecondCallError, message, outputs=outputs, failed_sizes=(sample.sizes,), hint=_HINT)


def last_kept_call(reply: EngineReply) -> EngineReply:
    """Return the reply with the last changed call's outputs, if any, instead of its batch's."""
    outputs = next((call.outputs for call in reversed(reply.changed) if call.outputs), None)
    return reply if outputs is None else replace(reply, outputs=(tuple(map(np.asarray, outputs)),))
