"""Deliberately wrong engines are caught and named; every failure of an engine becomes an outcome."""

from __future__ import annotations

import json

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply, KeptStates
from t2n_core.errors import EngineCrash, EngineLoadError, EngineOutOfMemory, EngineTimeout, InputError, ParityError
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample


def double(inputs):
    return (inputs[0] * 2, inputs[0].sum(axis=0))


class FakeEngine:
    """Computes `double`, then lets `spoil(batch index, outputs)` do harm."""

    name, version, kept_states = "tract", "0.99.1", None

    def __init__(self, spoil=None, reply=None):
        self.spoil, self.reply, self.calls = spoil, reply, 0

    def run(self, archive, batches, *, timeout=60.0):
        self.calls += 1
        if self.reply is not None:
            return self.reply
        outputs = [double(batch) for batch in batches]
        if self.spoil:
            outputs = [self.spoil(index, output) for index, output in enumerate(outputs)]
        return EngineReply("ok", "run", outputs=tuple(outputs), times={"load": 0.5, "run": 0.25})

    def close(self):
        pass


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "model.tar"
    path.write_bytes(b"graph")
    return path


@pytest.fixture
def samples():
    rng = np.random.default_rng(3)
    result = []
    for size in (10, 1, 11, 23):
        inputs = (rng.standard_normal((size, 4)).astype(np.float32),)
        result.append(Sample(inputs, double(inputs), {"T": size}))
    return result


def request(archive, samples, level="approximate", **more):
    return CheckRequest(archive, samples, ["y", "total"], Judgement.parse(level), **more)


def check(archive, samples, spoil=None, reply=None, level="approximate"):
    return check_parity(FakeEngine(spoil, reply), request(archive, samples, level))


def test_a_right_engine_passes_with_one_load(archive, samples):
    engine = FakeEngine()
    outcome = check_parity(engine, request(archive, samples, "exact"))
    assert outcome.passed
    assert engine.calls == 1
    assert (outcome.level, outcome.required, outcome.engine) == ("exact", "exact", "tract 0.99.1")
    assert [sizes["T"] for sizes in outcome.sizes] == [10, 1, 11, 23]
    assert outcome.failed_sizes == ()
    assert (outcome.archive_bytes, outcome.times["load"]) == (5, 0.5)
    assert outcome.raise_for_failure() is outcome


def change_one(index, outputs):
    changed = outputs[0].copy()
    changed[-1, 2] += 1
    return (changed, outputs[1]) if index == 2 else outputs


def labelled(*labels: str, size: int = 5) -> list[Sample]:
    rows = np.abs(np.random.default_rng(1).normal(size=(len(labels), size, 4))).astype(np.float32)
    return [Sample((row,), (2 * row, row.sum(0)), {"T": size}, label) for row, label in zip(rows, labels, strict=True)]


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        ("drawn alike", "or the model has no meaning for what was drawn, and inputs= gives it others"),
        ("drawn signed", "only inputs with a sign that the example's never have fail"),
    ],
)
def test_inputs_without_a_meaning_are_a_cause(label, hint, archive):
    def change(index, outputs):
        return (outputs[0] + 1, outputs[1]) if index == 1 else outputs

    outcome = check(archive, labelled("example", label, "drawn near"), change)
    assert outcome.status is Status.MISMATCH
    assert hint in outcome.error.hint


def test_a_size_far_beyond_all_others_is_named(archive):
    def change(index, outputs):
        return (outputs[0] + 1, outputs[1]) if index == 2 else outputs

    samples = [*labelled("example", "drawn alike"), *labelled("drawn near", size=1000)]
    outcome = check(archive, samples, change)
    assert outcome.error.hint.startswith("all smaller sizes pass: an error grows with T")


def test_one_element_at_one_size_is_found(archive, samples):
    outcome = check(archive, samples, change_one)
    assert outcome.status is Status.MISMATCH
    assert outcome.failed_sizes == ({"T": 11},)
    assert [o.name for o in outcome.outputs if not o.passed] == ["y"]
    assert outcome.outputs[0].worst_index == (10, 2)
    assert "a size was probably baked in" in outcome.error.hint
    with pytest.raises(ParityError) as caught:
        outcome.raise_for_failure()
    text = str(caught.value)
    for part in ("mismatch at stage `compare` in tract 0.99.1", "float32[11,4]", "[10, 2]", "failed at: T=11", "T=23"):
        assert part in text


def test_the_level_that_would_hold_is_offered(archive, samples):
    outcome = check(archive, samples, lambda _, outputs: (outputs[0] + np.float32(0.01), outputs[1]))
    assert (outcome.status, outcome.level) == (Status.MISMATCH, "very")
    assert "tolerance='very'" in outcome.error.hint
    assert check(archive, samples, lambda _, o: (o[0] + np.float32(0.01), o[1]), level="very").passed


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _, o: o[:1], "missing output: 1 came, expected 2"),
        (lambda _, o: (*o, o[0]), "extra output: 3 came, expected 2"),
        (lambda _, o: (o[0].astype(np.float64), o[1]), "dtype float64, expected float32"),
        (lambda _, o: (o[0].T, o[1]), "shape [4, "),
        (lambda _, o: (np.full_like(o[0], np.nan), o[1]), "NaN where the other side has none"),
        (lambda _, o: (np.full_like(o[0], np.inf), o[1]), "infinities where the other side is finite"),
    ],
)
def test_what_no_tolerance_mends(archive, samples, spoil, words):
    outcome = check(archive, samples, spoil, level="ultra")
    assert (outcome.status, outcome.level) == (Status.MISMATCH, None)
    assert words in outcome.describe()


@pytest.mark.parametrize(
    ("expected", "got", "passes"),
    [
        (np.array([1, -7], np.int8), np.array([1, -7]), True),
        (np.array([1, -7], np.int8), np.array([1, 249]), False),
        (np.array([0.5, np.nan], np.float16), np.array([0.5, np.nan], np.float32), True),
        (np.array([0.5, 0.1], np.float16), np.array([0.5, 0.1], np.float32), False),
    ],
)
def test_what_came_wider_is_compared_by_value(archive, expected, got, passes):
    samples = [Sample((expected,), (expected,))]
    reply = EngineReply("ok", "run", outputs=((got,),), widened=True)
    assert check(archive, samples, reply=reply, level="ultra").passed == passes
    plain = EngineReply("ok", "run", outputs=((got,),))
    assert not check(archive, samples, reply=plain, level="ultra").passed


def test_a_success_with_too_few_batches_is_an_error(archive, samples):
    outcome = check(archive, samples, reply=EngineReply("ok", "run", outputs=(double(samples[0].inputs),)))
    assert outcome.status is Status.ERROR
    assert "answered 1 of 4 batches" in outcome.error.message


@pytest.mark.parametrize(
    ("reply", "status", "raised"),
    [
        (EngineReply("error", "load", "No definition for operator"), Status.ERROR, EngineLoadError),
        (EngineReply("crash", "optimise", "panicked at axis.rs:7"), Status.CRASH, EngineCrash),
        (EngineReply("timeout", "run", "no answer in 60 s"), Status.TIMEOUT, EngineTimeout),
        (EngineReply("oom", "run", ""), Status.OOM, EngineOutOfMemory),
    ],
)
def test_failures_of_an_engine(archive, samples, reply, status, raised):
    outcome = check(archive, samples, reply=reply)
    assert (outcome.status, outcome.stage) == (status, reply.stage)
    assert outcome.error.error_class == raised.__name__
    with pytest.raises(raised, match=reply.message or "gave no message"):
        outcome.raise_for_failure()


def test_the_size_at_which_the_engine_stopped_is_named(archive, samples):
    reply = EngineReply("error", "run", "Clashing resolution", outputs=(double(samples[0].inputs),))
    outcome = check(archive, samples, reply=reply)
    assert outcome.failed_sizes == ({"T": 1},)
    assert "it ran at T=10" in outcome.error.hint


def test_an_engine_that_raises_is_an_outcome_too(archive, samples):
    class Broken(FakeEngine):
        def run(self, archive, batches, *, timeout=60.0):
            raise OSError("no pipe")

    outcome = check_parity(Broken(), request(archive, samples))
    assert (outcome.status, outcome.error.error_class, outcome.error.message) == (Status.ERROR, "OSError", "no pipe")


def test_a_missing_archive_is_an_outcome(tmp_path, samples):
    assert check(tmp_path / "none.tar", samples).status is Status.ERROR


def test_no_samples_is_the_callers_error(archive):
    with pytest.raises(InputError, match="at least one sample"):
        check_parity(FakeEngine(), request(archive, []))


def test_no_outputs_prove_nothing(archive, samples):
    with pytest.raises(InputError, match="needs an output"):
        check_parity(FakeEngine(), request(archive, [Sample(samples[0].inputs, ())]))


def test_outcomes_are_json(archive, samples):
    outcome = check(archive, samples, lambda _, o: (np.full_like(o[0], np.nan), o[1]))
    text = json.dumps(outcome.to_dict(), allow_nan=False)
    back = json.loads(text)
    assert back["outputs"][0]["max_abs"] == "inf"
    assert back["outputs"][0]["worst_actual"] == "nan"
    assert back["failed_sizes"] == [{"T": 10}, {"T": 1}, {"T": 11}, {"T": 23}]


class Guarded:
    """Computes `double` up to T = 23, beyond which it answers what it was told."""

    name, version, kept_states = "tract", "0.99.1", None

    def __init__(self, beyond="refused"):
        self.beyond, self.calls = beyond, []

    def run(self, archive, batches, *, timeout=60.0, keep_going=False):
        self.calls.append(len(batches))
        outputs, refused = [], {}
        for index, batch in enumerate(batches):
            out = len(batch[0]) > 23
            if out and self.beyond == "died":
                return EngineReply("crash", "run", "died of SIGSEGV", outputs=tuple(outputs), refused=refused)
            if out and self.beyond == "refused":
                refused[index] = "T = 24 is outside of the range that this archive holds for: 1 <= T <= 23"
            outputs.append(() if index in refused else double(batch))
        return EngineReply("ok", "run", outputs=tuple(outputs), refused=refused, times={"run": 0.25})

    def close(self):
        pass


HELD = SizeRange({"T": (1, 23)})


def beyond(*sizes):
    return [Sample((np.ones((size, 4), np.float32),), (), {"T": size}) for size in sizes]


def test_sizes_out_of_the_range_are_refused_in_the_same_job(archive, samples):
    engine = Guarded()
    outcome = check_parity(engine, request(archive, samples, range=HELD, outside=beyond(24, 40)))
    assert outcome.passed
    assert engine.calls == [6]
    assert outcome.range == "1 <= T <= 23"
    assert [sizes["T"] for sizes in outcome.sizes] == [10, 1, 11, 23]
    assert [sizes["T"] for sizes in outcome.refused_sizes] == [24, 40]
    assert "the archive holds for 1 <= T <= 23; refused at T=24; T=40" in outcome.describe()
    assert json.loads(json.dumps(outcome.to_dict()))["refused_sizes"] == [{"T": 24}, {"T": 40}]


def test_an_engine_that_runs_out_of_the_range_fails(archive, samples):
    outcome = check_parity(Guarded("runs"), request(archive, samples, range=HELD, outside=beyond(24, 40)))
    assert (outcome.status, outcome.stage) == (Status.ERROR, "run")
    assert outcome.failed_sizes == ({"T": 24}, {"T": 40})
    assert "runs at T=24; T=40, outside the range for which the archive is valid, 1 <= T <= 23" in outcome.error.message


def test_wrong_numbers_count_before_what_is_outside(archive, samples):
    samples[1] = Sample(samples[1].inputs, (samples[1].expected[0] + 1, samples[1].expected[1]), {"T": 1})
    outcome = check_parity(Guarded("runs"), request(archive, samples, range=HELD, outside=beyond(24)))
    assert outcome.status is Status.MISMATCH
    assert outcome.failed_sizes == ({"T": 1},)


def test_a_death_out_of_the_range_is_told(archive, samples):
    engine = Guarded("died")
    outcome = check_parity(engine, request(archive, samples, range=HELD, outside=beyond(24, 40)))
    assert outcome.passed
    assert engine.calls == [6, 4]
    assert outcome.times == {"run": 0.25}
    assert outcome.refused_sizes == ()
    assert outcome.facts["died_outside"] == {"sizes": {"T": 24}, "message": "died of SIGSEGV"}


def test_a_refusal_inside_of_the_range_is_a_failure(archive, samples):
    wide = SizeRange({"T": (1, 40)})
    inside = [*samples, *beyond(30)]
    outcome = check_parity(Guarded(), request(archive, inside, range=wide, outside=beyond(41)))
    assert (outcome.status, outcome.stage) == (Status.ERROR, "run")
    assert outcome.failed_sizes == ({"T": 30},)
    assert "outside of the range" in outcome.error.message


class EndsInCalls:
    """Computes `double`, and ends with a status in the first call that is made in a kept State."""

    name, version, kept_states = "tract", "0.99.1", KeptStates(resets_scans=True, resizes=True)

    def __init__(self, status):
        self.status = status

    def run(self, archive, batches, *, timeout=60.0, calls=(), fed=()):
        outputs = tuple(double(batch) for batch in batches)
        if calls:
            return EngineReply(self.status, "run", "it ended in the call", outputs=outputs)
        return EngineReply("ok", "run", outputs=outputs, times={"run": 0.25})

    def close(self):
        pass


@pytest.mark.parametrize("status", ["crash", "error"])
def test_an_engine_that_ends_in_a_kept_state_is_a_mismatch_of_the_second_call(archive, samples, status):
    outcome = check_parity(EndsInCalls(status), request(archive, samples))
    assert (outcome.status, outcome.error.error_class) == (Status.MISMATCH, "SecondCallError")
    assert outcome.error.message == "the second call in one State at T=1 fails: it ended in the call"
    assert outcome.failed_sizes == ({"T": 1},)


@pytest.mark.parametrize(("status", "error"), [("timeout", EngineTimeout), ("oom", EngineOutOfMemory)])
def test_a_limit_that_is_reached_in_a_kept_state_is_a_failure(archive, samples, status, error):
    outcome = check_parity(EndsInCalls(status), request(archive, samples))
    assert not outcome.passed
    with pytest.raises(error, match="it ended in the call"):
        outcome.raise_for_failure()
