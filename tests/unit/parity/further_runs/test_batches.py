"""Further batches in the job of a check, and what becomes of the samples where these fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from t2n_core.engine.processes.death import FROM_OUTSIDE
from t2n_core.engine.protocol import EngineReply, ReplyStatus
from t2n_core.parity.further_runs.batches import Batches, Call, Fed, SelfComparison, run_with_further
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest

ONE = (np.ones(3, np.float32),)
OTHER = (np.full(3, 2, np.float32),)
OUTSIDE = (np.full(3, 3, np.float32),)


class Other(SelfComparison):
    def judge(self, found: Outcome, request: CheckRequest, reply: EngineReply, own: EngineReply) -> Outcome:
        return found


class Job:
    """An engine that ends with a status at a batch of this number, or in a call where it is 0."""

    def __init__(self, status: ReplyStatus, at: int, message: str = "it ended") -> None:
        self.status, self.at, self.message = status, at, message
        self.jobs = list[tuple[int, int]]()

    def __call__(self, batches: Batches, outside: Batches, fed: Sequence[Fed], calls: Sequence[Call]) -> EngineReply:
        batches = [*batches, *outside]
        self.jobs.append((len(batches), len(calls)))
        done = tuple(tuple(batch) for batch in batches)
        places = [index for index, batch in enumerate(batches) if batch[0][0] == self.at]
        if self.status == "ok" or not (places or (calls and self.at == 0)):
            return EngineReply("ok", "run", outputs=done, times={"run": 1.0})
        return EngineReply(self.status, "run", message=self.message, outputs=done[: places[0]] if places else done)


Replies = tuple[Job, EngineReply, list[EngineReply], EngineReply]


def replies(status: ReplyStatus, at: int = 2, message: str = "it ended") -> Replies:
    job = Job(status, at, message)
    return job, *run_with_further(job, [ONE, ONE], [Other(batches=[OTHER]), Other(calls=[(0, 0)])], [OUTSIDE])


def test_all_run_in_one_job() -> None:
    job, samples, (further, _), outside = replies("ok")
    assert job.jobs == [(4, 1)]
    assert [len(reply.outputs) for reply in (samples, further, outside)] == [2, 1, 1]


@pytest.mark.parametrize("status", ["error", "crash"])
def test_what_fails_does_not_end_the_others(status: ReplyStatus) -> None:
    job, samples, (further, called), outside = replies(status)
    assert job.jobs == [(4, 1), (3, 1)]
    assert called.status == "ok"
    assert (samples.status, further.status, outside.status) == ("ok", status, "ok")


@pytest.mark.parametrize("status", ["timeout", "oom"])
def test_a_limit_of_the_job_is_no_answer_to_a_comparison(status: ReplyStatus) -> None:
    job, samples, _, _ = replies(status)
    assert job.jobs == [(4, 1)]
    assert (samples.status, samples.message, len(samples.outputs)) == (status, "it ended", 2)


@pytest.mark.parametrize("status", ["crash", "error"])
def test_an_engine_that_ends_in_a_call_fails_the_comparison_of_calls(status: ReplyStatus) -> None:
    job, samples, (further, called), outside = replies(status, at=0)
    assert job.jobs == [(4, 1), (4, 0)]
    assert (samples.status, further.status, outside.status) == ("ok", "ok", "ok")
    assert (called.status, called.message) == (status, "it ended")


@pytest.mark.parametrize("status", ["timeout", "oom"])
def test_a_limit_in_a_call_is_the_reply_to_the_samples(status: ReplyStatus) -> None:
    job, samples, _, _ = replies(status, at=0)
    assert job.jobs == [(4, 1)]
    assert (samples.status, samples.message, len(samples.outputs)) == (status, "it ended", 2)


def test_calls_are_made_also_where_a_batch_outside_ends_the_job() -> None:
    job, samples, (further, called), outside = replies("crash", at=3)
    assert job.jobs == [(4, 1), (3, 1)]
    assert [reply.status for reply in (samples, further, called)] == ["ok"] * 3
    assert samples.times == {"run": 1.0}
    assert (outside.status, len(outside.outputs)) == ("crash", 0)


def test_a_job_that_fails_after_all_batches_without_a_call_is_a_failure() -> None:
    reply = EngineReply("timeout", "run", message="it hangs", outputs=(ONE,))
    samples, _, _ = run_with_further(lambda *_: reply, [ONE], [], [])
    assert (samples.status, samples.message) == ("timeout", "it hangs")


@pytest.mark.parametrize("at", [2, 0])
def test_a_kill_from_outside_is_the_reply_to_the_samples(at: int) -> None:
    message = f"killed by SIGTERM {FROM_OUTSIDE}"
    _, samples, _, _ = replies("crash", at, message)
    assert (samples.status, samples.message) == ("crash", message)
