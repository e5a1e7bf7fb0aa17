"""Ranges of releases, from two versions or from a specifier."""

from __future__ import annotations

import pytest
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from t2n_core.nnef.releases import ALL_RELEASES, Releases

VERSIONS = [Version(f"0.{minor}.{patch}") for minor in range(19, 25) for patch in range(30)]


def test_a_range_begins_with_its_first_release_and_ends_before_the_other() -> None:
    range_ = Releases.of("0.21.6", "0.23.0")
    assert [Version(v) in range_ for v in ("0.21.5", "0.21.6", "0.22.4", "0.23.0")] == [False, True, True, False]
    assert Version("0.1") in ALL_RELEASES


@pytest.mark.parametrize(
    "specifier",
    [
        "",
        ">=0.21",
        "<0.23.5",
        "<0.23, >=0.21.6",
        ">=0.20,>=0.21.3,<0.22,<0.23",
        "==0.21.*",
        "~=0.21.3",
        "==0.22.4",
        ">0.21.6,<=0.22.4",
        ">=0.21,!=0.21.5,!=0.22.*",
        "<0.20,>=0.23",
    ],
)
def test_a_specifier_names_the_releases_that_packaging_finds_in_it(specifier: str) -> None:
    range_ = Releases.parse(specifier)
    assert [v for v in VERSIONS if v in range_] == [v for v in VERSIONS if v in SpecifierSet(specifier)]
    assert Releases.parse(str(range_)) == range_


def test_a_range_as_a_specifier() -> None:
    assert Releases.parse(">=0.21,<0.23") == Releases.of("0.21", "0.23")
    assert str(Releases.of("0.21", "0.23")) == ">=0.21,<0.23"
    assert str(ALL_RELEASES) == ""
    with pytest.raises(InvalidSpecifier):
        Releases.parse("0.21 or so")


def test_a_pre_release_comes_before_its_release_and_is_in_one_of_two_adjacent_ranges() -> None:
    membership = [Version("0.22.0rc1") in Releases.parse(text) for text in ("<0.22", ">=0.22", ">=0.21", "!=0.21.5")]
    assert membership == [True, False, True, True]
