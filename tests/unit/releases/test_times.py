"""Changes of speed between neighbours of a branch, by paired runs of an engine that takes what a test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from t2n_core.engine.protocol import EngineReply
from t2n_core.releases.times import SpeedReport, measure_releases

RELEASES = [Version(text) for text in ("0.21.12", "0.21.13", "0.21.14", "0.22.1", "0.23.0")]


@dataclass
class Clock:
    """An engine of a release; the machine gets slower from run to run."""

    version: str
    takes: Callable[[str], float]
    runs: list[str]
    name: str = "tract"

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> EngineReply:
        self.runs.append(self.version)
        seconds = self.takes(self.version)
        if not seconds:
            return EngineReply("error", "load", "no")
        return EngineReply("ok", "run", times={"run": seconds * len(batches) * (1 + 0.01 * len(self.runs))})

    def close(self) -> None: ...


def measured(takes: Callable[[str], float]) -> tuple[SpeedReport, list[str]]:
    runs: list[str] = []
    engines = {release: Clock(str(release), takes, runs) for release in RELEASES}
    return measure_releases(RELEASES, engines.__getitem__, Path("none"), []), runs


def test_a_slower_release_is_named_with_its_neighbour_of_the_branch() -> None:
    report, runs = measured(lambda release: 2e-3 if release in ("0.22.1", "0.23.0") else 1e-3)
    (change,) = report.changes
    assert (str(change.before), str(change.after)) == ("0.21.13", "0.22.1")
    assert 1.9 < change.ratio < 2.1
    assert "0.22.1 takes 2.0" in change.describe()
    assert runs[:5] == [str(release) for release in RELEASES], "all of them in each round"


def test_a_faster_release_is_named() -> None:
    report, _ = measured(lambda release: 1e-3 if release == "0.21.14" else 3e-3)
    (change,) = report.changes
    assert (str(change.before), str(change.after)) == ("0.21.13", "0.21.14")
    assert 2.8 < 1 / change.ratio < 3.2
    assert "times as fast as 0.21.13" in change.describe()


def test_what_differs_in_some_rounds_only_is_no_change() -> None:
    numbers = iter([3.0, 0.9] * 100)
    report, _ = measured(lambda release: next(numbers) * 1e-3 if release == "0.23.0" else 1e-3)
    assert not report.changes
    assert "no change by a factor of 1.5" in report.describe()


def test_a_release_that_does_not_run_it_is_left_out() -> None:
    report, runs = measured(lambda release: 0.0 if release == "0.21.13" else 1e-3)
    assert report.failed == (Version("0.21.13"),)
    assert runs.count("0.21.13") == 1
    assert not report.changes
