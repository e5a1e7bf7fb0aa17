"""Further batches in the job of a check, and what becomes of the samples where these fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from t2n_core.check.judging.further import Batches, Fed, SelfComparison, run_with_further
from t2n_core.check.outcome import Outcome
from t2n_core.check.request import CheckRequest
from t2n_core.engine.protocol import EngineReply, ReplyStatus

ONE = (np.ones(3, np.float32),)
OTHER = (np.full(3, 2, np.float32),)
OUTSIDE = (np.full(3, 3, np.float32),)


class Other(SelfComparison):
    def judge(self, found: Outcome, request: CheckRequest, reply: EngineReply, own: EngineReply) -> Outcome:
        return found


class Job:
    """An engine that ends with a status at the batch `OTHER`."""

    def __init__(self, status: ReplyStatus) -> None:
        self.status, self.jobs = status, list[int]()

    def __call__(self, batches: Batches, fed: Sequence[Fed]) -> EngineReply:
        self.jobs.append(len(batches))
        done = [tuple(batch) for batch in batches]
        places = [place for place, batch in enumerate(batches) if batch[0][0] == 2]
        if self.status == "ok" or not places:
            return EngineReply("ok", "run", outputs=tuple(done))
        return EngineReply(self.status, "run", message="it ended", outputs=tuple(done[: places[0]]))


def replies(status: ReplyStatus) -> tuple[Job, EngineReply, list[EngineReply], EngineReply]:
    job = Job(status)
    return job, *run_with_further(job, [ONE, ONE], [Other(batches=[OTHER])], [OUTSIDE])


def test_all_run_in_one_job() -> None:
    job, samples, (further,), outside = replies("ok")
    assert job.jobs == [4]
    assert [len(reply.outputs) for reply in (samples, further, outside)] == [2, 1, 1]


@pytest.mark.parametrize("status", ["error", "crash"])
def test_what_fails_does_not_end_the_others(status: ReplyStatus) -> None:
    job, samples, (further,), outside = replies(status)
    assert job.jobs == [4, 3]
    assert (samples.status, further.status, outside.status) == ("ok", status, "ok")


@pytest.mark.parametrize("status", ["timeout", "oom"])
def test_a_limit_of_the_job_is_no_answer_to_a_comparison(status: ReplyStatus) -> None:
    job, samples, _, _ = replies(status)
    assert job.jobs == [4]
    assert (samples.status, samples.message, len(samples.outputs)) == (status, "it ended", 2)
