"""Boundaries along the branches of releases: by a sweep of all, or by bisection with few fetches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest
from packaging.version import Version

from t2n_core.engine.provision.branches import branches, predecessor
from t2n_core.errors import EngineProvisionError
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.stage import Stage, Status
from t2n_core.releases.search import ReleaseReport, search_releases, search_right
from tests.each import check_each

PATCHES = {
    "0.19": "2 3 5 6 7 8 10 11 12 13 14 15",
    "0.20": "3 4 5 6 7 18 19 20 21 22",
    "0.21": " ".join(map(str, range(20))),
    "0.22": "1 3 4",
    "0.23": "0 1 2 3 5 6 7 8 9",
}
ALL = [Version(f"{line}.{patch}") for line, patches in PATCHES.items() for patch in patches.split()]
LAST = str(ALL[-1])
RIGHT = Outcome(Status.PASS, Stage.COMPARE)
WRONG = Outcome(Status.MISMATCH, Stage.COMPARE)
DEAD = Outcome(Status.CRASH, Stage.RUN)


def versions(*texts: str) -> list[Version]:
    return [Version(text) for text in texts]


def wrong_in(*texts: str, first: str = "9", before: str = "9") -> Callable[[Version], Outcome]:
    """A judge by which a window of releases, and those named, are wrong."""
    low, high = versions(first, before)
    return lambda release: WRONG if release in versions(*texts) or low <= release < high else RIGHT


def boundaries(report: ReleaseReport) -> list[str]:
    return [boundary.describe() for boundary in report.boundaries]


@pytest.mark.parametrize(
    ("release", "made_from"),
    [
        ("0.19.2", None),
        ("0.20.3", "0.19.15"),
        ("0.21.0", "0.20.22"),
        ("0.21.14", "0.21.13"),
        ("0.22.1", "0.21.13"),
        ("0.22.3", "0.22.1"),
        ("0.23.0", "0.22.1"),
        ("0.23.5", "0.23.3"),
    ],
)
def test_a_release_was_made_from_another(release: str, made_from: str | None) -> None:
    assert predecessor(Version(release), ALL) == (Version(made_from) if made_from else None)


def test_branches_part_where_the_releases_were_made_side_by_side() -> None:
    branch_list = branches(ALL)
    assert [(str(branch[0]), str(branch[-1])) for branch in branch_list] == [
        ("0.19.2", LAST),
        ("0.22.1", "0.22.4"),
        ("0.21.13", "0.21.19"),
    ]
    assert sum(map(len, branch_list)) == len(ALL) + 2  # two of them stand in two branches


def test_a_sweep_sees_both_ends_of_a_window() -> None:
    report = search_releases(ALL, wrong_in(first="0.21.8", before="0.21.11"), cached=ALL)
    assert len(report.outcomes) == len(ALL) == 54
    assert boundaries(report) == [
        "0.21.7 right, 0.21.8 mismatch at compare",
        "0.21.10 mismatch at compare, 0.21.11 right",
    ]
    assert report.nearest_right(Version("0.21.9")) == Version("0.21.11")


def test_neighbours_by_number_of_two_branches_are_no_boundary() -> None:
    report = search_releases(ALL, wrong_in(*(f"0.21.{patch}" for patch in range(14, 20))), cached=ALL)
    assert boundaries(report) == ["0.21.13 right, 0.21.14 mismatch at compare"]
    report = search_releases(ALL, wrong_in("0.22.3", "0.22.4"), cached=ALL)
    assert boundaries(report) == ["0.22.1 right, 0.22.3 mismatch at compare"]


def test_another_kind_of_failure_is_a_boundary_too() -> None:
    report = search_releases(ALL, lambda release: DEAD if release < Version("0.22") else WRONG, cached=ALL)
    assert boundaries(report) == ["0.21.13 crash at run, 0.22.1 mismatch at compare"]
    assert not report.right
    assert report.nearest_right(Version(LAST)) is None


def test_one_boundary_is_found_with_seven_fetches() -> None:
    """The case fails in the releases made from `since`, which is on the branch to the newest one or is not."""

    def check(since: Version) -> None:
        def judge(release: Version) -> Outcome:
            made_from: Version | None = release
            while made_from is not None and made_from != since:
                made_from = predecessor(made_from, ALL)
            return RIGHT if made_from is None else WRONG

        bad = max(release for release in ALL if judge(release) is WRONG)
        report = search_releases(ALL, judge, cached=[bad])
        assert len(report.fetched) <= 7
        assert boundaries(report) == [f"{predecessor(since, ALL)} right, {since} mismatch at compare"]

    check_each(ALL[1:], check)


def test_what_was_not_tried_between_is_said() -> None:
    outcomes: Mapping[Version, Outcome] = {Version("0.19.2"): RIGHT, Version(LAST): WRONG}
    report = search_releases(ALL, outcomes.__getitem__, cached=list(outcomes), fetches=0)
    assert boundaries(report) == [f"0.19.2 right, {LAST} mismatch at compare (44 between them were not tried)"]
    assert "2 of 54 releases of tract tried" in report.describe()


def test_a_release_that_cannot_be_had_is_passed_over() -> None:
    def judge(release: Version) -> Outcome:
        if release in versions("0.21.6", "0.21.7"):
            raise EngineProvisionError("no network")
        return WRONG if release >= Version("0.21.7") else RIGHT

    report = search_releases(ALL, judge, cached=versions("0.19.2", LAST), fetches=20)
    assert boundaries(report) == ["0.21.5 right, 0.21.8 mismatch at compare (2 between them were not tried)"]
    assert report.failures == dict.fromkeys(versions("0.21.7", "0.21.6"), "no network")
    assert not {*report.failures} & {*report.fetched}
    assert "\n  not to be had: 0.21.6, 0.21.7 (no network)\n" in report.describe()


def test_without_any_release_nothing_is_said_of_boundaries() -> None:
    def judge(release: Version) -> Outcome:
        raise EngineProvisionError("no network")

    report = search_releases(ALL, judge, cached=[], wanted=versions("0.21.19"), fetches=0)
    assert report.describe() == "0 of 54 releases of tract tried\n  not to be had: 0.21.19 (no network)"


def test_the_ends_are_fetched_where_all_that_is_known_ends_alike() -> None:
    report = search_releases(ALL, wrong_in("0.21.5"), cached=versions("0.21.5"), fetches=1)
    assert report.fetched == (Version(LAST),)


def test_the_nearest_right_release_is_tried_without_those_beyond() -> None:
    judge = wrong_in(first="0.21.8", before="0.21.11")
    report = search_right(ALL, judge, Version("0.21.9"), cached=ALL, seconds=60)
    assert sorted(report.outcomes) == versions("0.21.8", "0.21.9", "0.21.10", "0.21.11")
    assert report.nearest_right(Version("0.21.9")) == Version("0.21.11")


def test_the_search_for_a_right_release_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(release: Version) -> Outcome:
        now[0] += 10
        return DEAD

    report = search_right(ALL, judge, Version(LAST), cached=ALL, seconds=20)
    assert sorted(report.outcomes) == versions("0.23.8", LAST)
