"""Further batches in the job of a check: some compare the engine with itself, others are out of the range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from t2n_core.engine.processes.death import FROM_OUTSIDE
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest, Pairs

Batches = Sequence[Sequence[Array]]
Call = tuple[int, int]
"""The indices of the sample whose State is used again, and of the sample that then runs in it."""
Fed = tuple[int, Pairs]
"""The index of a batch, and pairs of indices: an input, and the previous batch's output that feeds it."""
_LIMITS = ("timeout", "oom")
"""Statuses of a job that exceeded its time or memory."""
Run = Callable[[Batches, Batches, Sequence[Fed], Sequence[Call]], EngineReply]
"""Runs batches, then those outside the range, some of the former fed, and then the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfComparison(ABC):
    """A comparison of the engine with itself, and the batches and calls that it adds to the job of a check."""

    batches: Batches = ()
    pairs: Pairs = ()
    """Indices of an input and of an output: each batch but the first takes this output of the previous batch."""
    calls: Sequence[Call] = ()

    @abstractmethod
    def judge(self, outcome: Outcome, request: CheckRequest, reply: EngineReply, further_reply: EngineReply) -> Outcome:
        """Return a pass with facts added, or the mismatch that this comparison finds.

        `reply` is the engine's reply to the samples, and `further_reply` its reply to the batches of this comparison.
        """


def run_with_further(
    run: Run, samples: Batches, further: Sequence[SelfComparison], outside: Batches
) -> tuple[EngineReply, list[EngineReply], EngineReply]:
    """Run all batches in one job, and return the replies to the samples, to each comparison, and to those outside.

    A failure in a comparison may end the job; all others then run again without it. A failure at a limit of the job, or
    by a signal from outside, is the reply to the samples: whether the comparison holds is unknown. Calls come last: if
    a batch outside the range ends the job, all others run again without such batches. A job that fails with all batches
    answered has failed in a call.
    """
    failed: dict[int, EngineReply] = {}
    beyond: EngineReply | None = None
    while True:
        batches, fed, calls = list(samples), list[Fed](), list[Call]()
        left = [position for position in range(len(further)) if position not in failed]
        for position in left:
            comparison = further[position]
            fed += [
                (len(batches) + index, comparison.pairs)
                for index in range(1, len(comparison.batches))
                if comparison.pairs
            ]
            batches += comparison.batches
            calls += comparison.calls
        job = run(batches, outside, fed, calls)
        reply, rest = split_reply(job, len(samples))
        replies = dict(failed)
        for position in left:
            replies[position], rest = split_reply(rest, len(further[position].batches))
        if job.status != "ok" and job.stage == "run" and len(batches) <= len(job.outputs) < len(batches) + len(outside):
            beyond, outside = rest, ()
            continue
        if job.status != "ok" and len(job.outputs) == len(batches) + len(outside):
            called = next((position for position in left if further[position].calls), None)
            if called is None:
                reply = replace(job, outputs=reply.outputs, refused={})
            else:
                replies[called] = replace(job, outputs=(), refused={})
        first = next((position for position in left if replies[position].status != "ok"), None)
        if reply.status == "ok" and first is not None and _says_nothing(replies[first]):
            reply = replace(replies[first], outputs=reply.outputs, refused={})
        if reply.status != "ok" or first is None:
            return reply, [replies[position] for position in range(len(further))], beyond or rest
        failed[first] = replies[first]


def _says_nothing(reply: EngineReply) -> bool:
    """Return whether a job ended for a reason other than its batches: a limit, or a signal from outside."""
    return reply.status in _LIMITS or reply.message.endswith(FROM_OUTSIDE)


def split_reply(reply: EngineReply, count: int) -> tuple[EngineReply, EngineReply]:
    """Return the replies to the first batches and to the others, which run only after the first."""
    inside = {index: text for index, text in reply.refused.items() if index < count}
    if inside:
        first = min(inside)
        reply = replace(reply, status="error", stage="run", message=inside[first], outputs=reply.outputs[:first])
        return replace(reply, refused={}), EngineReply("error", "run")
    if len(reply.outputs) < count or reply.stage != "run":
        return reply, EngineReply("error", "run")
    refused = {index - count: text for index, text in reply.refused.items()}
    beyond = replace(reply, outputs=reply.outputs[count:], refused=refused)
    return replace(reply, status="ok", outputs=reply.outputs[:count], refused={}), beyond
