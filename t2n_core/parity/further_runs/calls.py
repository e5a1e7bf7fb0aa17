"""Calls in a row: an archive whose state is fed back must return what the model does, call by call.

The model takes the objects that it returned, as a program passes them, so that the pairs of inputs and outputs that the
exporter states are compared with the model's own meaning of its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import CallsError
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.further_runs.batches import SelfComparison
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

COMPARED_CALLS = "compared_calls"
"""Fact of the outcome: the number of calls in a row that were compared with the model's."""
_HINT = "the archive's state is not the model's: this is a bug of the exporter unless the model keeps state in Python"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsInARow(SelfComparison):
    """Calls with the model's outputs; the engine feeds its own outputs back."""

    samples: Sequence[Sample]

    def judge(self, outcome: Outcome, request: CheckRequest, reply: EngineReply, further_reply: EngineReply) -> Outcome:
        """Return a pass with a fact added, or the mismatch of the first call that differs from the model's."""
        facts = {**outcome.facts, COMPARED_CALLS: len(self.samples)}
        names, criteria = request.output_names, request.criteria
        for number, sample in enumerate(self.samples):
            compared, problem = outcome.outputs, f"fails: {further_reply.message}"
            if number < len(further_reply.outputs):
                got = further_reply.outputs[number]
                compared = compare_outputs(sample.expected, got, names=names, criteria=criteria)
                bad = [output.name for output in compared if not output.passed]
                if not bad:
                    continue
                problem = (
                    f"gives other outputs than the model, which takes the state that it returned: {', '.join(bad)}"
                )
            message = f"call {number + 1} of {len(self.samples)} in a row {problem}"
            return replace(outcome, facts=facts).as_mismatch(
                CallsError, message, outputs=compared, failed_sizes=(sample.sizes,), hint=_HINT
            )
        return replace(outcome, facts=facts)


def calls_in_a_row(request: CheckRequest) -> CallsInARow | None:
    """Return the calls of a request; None if there are none, or no output is fed back."""
    if not request.calls or not request.state:
        return None
    batches = [sample.inputs for sample in request.calls]
    return CallsInARow(batches=batches, pairs=request.state, samples=request.calls)
