"""Each size of an archive is judged by itself: right, wrong, refused, or the end of the engine's process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine.protocol import ChangedCall, EngineReply, KeptStates
from t2n_core.errors import EngineCrash, InputError
from t2n_core.parity.outcome import Outcome, Stage, Status
from t2n_core.parity.samples import Sample
from t2n_core.parity.sizes import DIED, NOT_RUN, PROCESSES, REFUSED, UNGUARDED, check_sizes


class FakeEngine:
    """Doubles what it is given, and does something else at some sizes."""

    name, version, kept_states = "tract", "0.99.1", None

    def __init__(self, wrong=(), refused=(), deadly=(), loads=True, hangs=()):
        self.wrong, self.refused, self.deadly, self.hangs = wrong, refused, deadly, hangs
        self.loads, self.runs = loads, []

    def run(self, archive, batches, *, timeout=60.0, keep_going=False):
        assert keep_going
        self.runs.append([len(x) for (x,) in batches])
        if not self.loads:
            return EngineReply("error", "load", "No definition for operator")
        outputs, refused = [], {}
        for (x,) in batches:
            if len(x) in self.hangs:
                return EngineReply("timeout", "run", "no answer", outputs=tuple(outputs), refused=refused)
            if len(x) in self.deadly:
                return EngineReply("crash", "run", "panicked at a.rs:1", outputs=tuple(outputs), refused=refused)
            if len(x) in self.refused:
                refused[len(outputs)] = f"No possible scenario ({len(x)})"
                outputs.append(())
            else:
                outputs.append((x * 2 + (len(x) in self.wrong),))
        return EngineReply("ok", "run", outputs=tuple(outputs), refused=refused, times={"load": 0.5})


def samples() -> list[Sample]:
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal(size).astype("f4") for size in (4, 1, 2, 3, 7, 0)]
    return [Sample((x,), (x * 2,), {"T": len(x)}) for x in inputs]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "model.tar"
    path.write_bytes(b"graph")
    return path


def check(engine: FakeEngine, archive: Path, up_to: int = 99) -> Outcome:
    return check_sizes(engine, archive, samples(), accepts=lambda sizes: 1 <= sizes["T"] <= up_to)


def test_right_at_every_size(archive: Path) -> None:
    engine = FakeEngine()
    outcome = check(engine, archive)
    assert outcome.passed
    assert (outcome.level, outcome.engine, len(engine.runs)) == ("exact", "tract 0.99.1", 1)
    assert [sizes["T"] for sizes in outcome.sizes] == [4, 1, 2, 3, 7, 0]
    assert not {REFUSED, DIED, NOT_RUN} & outcome.facts.keys()


def test_refused_beyond_the_range_is_a_pass(archive: Path) -> None:
    outcome = check(FakeEngine(refused=(7, 0)), archive, up_to=4)
    assert outcome.passed
    assert outcome.facts[REFUSED] == [{"T": 7}, {"T": 0}]


def test_refused_within_the_range_is_none(archive: Path) -> None:
    outcome = check(FakeEngine(refused=(7, 2, 0)), archive)
    assert (outcome.status, outcome.stage) == (Status.ERROR, Stage.RUN)
    assert outcome.failed_sizes == ({"T": 2}, {"T": 7})
    assert "No possible scenario (2)" in outcome.describe()
    assert outcome.facts[REFUSED] == [{"T": 2}, {"T": 7}, {"T": 0}]


def test_wrong_numbers_count_first_and_at_any_size(archive: Path) -> None:
    outcome = check(FakeEngine(wrong=(2, 7), refused=(1,), deadly=(3,)), archive, up_to=4)
    assert outcome.status is Status.MISMATCH
    assert outcome.failed_sizes == ({"T": 2}, {"T": 7})


def test_wrong_only_beyond_the_range_lacks_a_guard(archive: Path) -> None:
    outcome = check(FakeEngine(wrong=(7,), refused=(0,)), archive, up_to=4)
    assert (outcome.status, outcome.facts[UNGUARDED]) == (Status.MISMATCH, [{"T": 7}])
    assert "runs beyond it" in outcome.describe()
    assert UNGUARDED not in check(FakeEngine(wrong=(4, 7)), archive, up_to=4).facts


def test_the_sizes_behind_a_death_run_in_another_process(archive: Path) -> None:
    engine = FakeEngine(deadly=(1, 3))
    outcome = check(engine, archive)
    assert (outcome.status, outcome.stage) == (Status.CRASH, Stage.RUN)
    assert engine.runs == [[4, 1, 2, 3, 7, 0], [2, 3, 7, 0], [7, 0]]
    assert outcome.failed_sizes == ({"T": 1}, {"T": 3})
    assert NOT_RUN not in outcome.facts
    with pytest.raises(EngineCrash, match="panicked"):
        outcome.raise_for_failure()


def test_deaths_are_bounded(archive: Path) -> None:
    engine = FakeEngine(deadly=(1, 2, 3, 4, 7))
    outcome = check(engine, archive)
    assert len(engine.runs) == PROCESSES
    assert outcome.facts[NOT_RUN] == [{"T": 7}, {"T": 0}]


def test_a_death_beyond_the_range_is_a_failure(archive: Path) -> None:
    assert check(FakeEngine(deadly=(0,)), archive).status is Status.CRASH


def test_deaths_alone_are_no_pass(archive: Path) -> None:
    assert check(FakeEngine(deadly=range(9)), archive, up_to=0).status is Status.CRASH


def test_who_hangs_is_not_asked_again(archive: Path) -> None:
    engine = FakeEngine(hangs=(1,))
    outcome = check(engine, archive)
    assert (outcome.status, len(engine.runs)) == (Status.TIMEOUT, 1)
    assert outcome.failed_sizes == ({"T": 1},)
    assert [sizes["T"] for sizes in outcome.facts[NOT_RUN]] == [2, 3, 7, 0]


def test_what_does_not_load(archive: Path) -> None:
    outcome = check(FakeEngine(loads=False), archive)
    assert (outcome.status, outcome.stage) == (Status.ERROR, Stage.LOAD)


def test_what_runs_nowhere_is_no_pass(archive: Path) -> None:
    outcome = check(FakeEngine(refused=range(9)), archive, up_to=0)
    assert (outcome.status, outcome.stage) == (Status.ERROR, Stage.RUN)


def test_a_missing_archive_and_no_sample(archive: Path, tmp_path: Path) -> None:
    assert check(FakeEngine(), tmp_path / "nothing").stage is Stage.LOAD
    with pytest.raises(InputError):
        check_sizes(FakeEngine(), archive, [], accepts=lambda _: True)


class RemembersEngine(FakeEngine):
    """Adds what the last call in a State left there."""

    kept_states = KeptStates(resets_scans=True, resizes=True)

    def run(self, archive, batches, *, calls=None, keep_going=False, **options):
        if calls is None:
            return super().run(archive, batches, keep_going=keep_going)
        assert not keep_going
        self.calls = [(len(batches[before][0]), len(batches[after][0])) for before, after in calls]
        changed = tuple(ChangedCall(index, (batches[after][0] * 3,)) for index, (_, after) in enumerate(calls))
        return EngineReply("ok", "run", outputs=tuple((x * 2,) for (x,) in batches), changed=changed)


def test_a_call_that_changes_the_next_in_its_state_is_a_mismatch(archive: Path) -> None:
    engine = RemembersEngine(refused=(7, 0))
    outcome = check(engine, archive, up_to=4)
    assert outcome.error is not None
    assert (outcome.status, outcome.error.error_class) == (Status.MISMATCH, "SecondCallError")
    assert engine.calls == [(2, 1)]
    assert outcome.failed_sizes == ({"T": 1},)


def test_an_archive_that_carries_its_state_may_change_the_next_call(archive: Path) -> None:
    engine = RemembersEngine()
    assert check_sizes(engine, archive, samples(), accepts=lambda sizes: sizes["T"] > 0, carries=True).passed
    assert not hasattr(engine, "calls")
