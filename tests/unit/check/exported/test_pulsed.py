"""The place of a pulsed archive, and what is stated of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.check.exported.pulsed import PulsedArchive, pulsed_path
from t2n_core.engine.tract.stream import Stream
from t2n_core.parity.outcome import Outcome, Stage, Status


@pytest.mark.parametrize(
    ("archive", "pulsed"),
    [
        ("model.nnef.tgz", "model.pulsed.nnef.tgz"),
        ("model.tgz", "model.pulsed.tgz"),
        ("model.v2.tar.gz", "model.v2.pulsed.tar.gz"),
        ("model.nnef.tar", "model.pulsed.nnef.tar"),
        ("model", "model.pulsed"),
    ],
)
def test_the_pulsed_archive_is_beside_the_other(archive: str, pulsed: str) -> None:
    assert pulsed_path(Path("some/where") / archive) == Path("some/where") / pulsed


def test_it_states_pulse_axes_and_delays() -> None:
    stream = Stream(4, [1, 2], [1], [3])
    outcome = Outcome(Status.PASS, Stage.COMPARE)
    pulsed = PulsedArchive(Path("some/model.tar"), "T", stream, ["audio", "noise"], ["text"], outcome)
    assert pulsed.describe() == (
        "model.tar takes 4 steps of T at a time: axis 1 of `audio`, axis 2 of `noise`; "
        "`text` is 3 steps late along axis 1"
    )
