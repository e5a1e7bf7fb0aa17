"""The behaviours of releases."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from packaging.version import Version

from t2n_core.nnef.tract.traits import TractTraits, first_release, traits_of
from tests.releases import NEWEST


@pytest.mark.parametrize(
    ("trait", "with_it", "without_it"),
    [
        ("has_extremes", ["0.21.7", NEWEST], ["0.21.6", "0.19.2"]),
        ("clamps_slice_ends", ["0.21.6", "0.22.4"], ["0.21.5", "0.23.0"]),
        ("shifts_for_powers", ["0.19.2", "0.23.8"], ["0.23.9"]),
    ],
)
def test_releases_with_a_behaviour(trait: str, with_it: list[str], without_it: list[str]) -> None:
    assert all(getattr(traits_of(Version(v)), trait) for v in with_it)
    assert not any(getattr(traits_of(Version(v)), trait) for v in without_it)


def test_every_behaviour_is_documented_and_told_apart_by_some_release() -> None:
    releases = [f"0.{minor}.{patch}" for minor in range(19, 24) for patch in range(30)]
    behaviours = [asdict(traits_of(Version(release))) for release in releases]
    for trait in TractTraits.__dataclass_fields__:
        assert {behaviour[trait] for behaviour in behaviours} == {True, False}, trait


def test_the_first_release_with_a_behaviour() -> None:
    assert first_release("has_extremes") == "0.21.7"
    with pytest.raises(KeyError):
        first_release("has_wings")
