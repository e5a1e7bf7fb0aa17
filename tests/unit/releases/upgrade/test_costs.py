"""A release is slower if nearly every round and the CPU time say so."""

from __future__ import annotations

import pytest
from packaging.version import Version

from t2n_core.profiling.profile import Profile
from t2n_core.releases.times import SpeedReport
from t2n_core.releases.upgrade.costs import Costs, OperatorChange

BOTH = (Version("0.21.19"), Version("0.22.4"))


@pytest.mark.parametrize(
    ("ratios", "cpu", "slower"),
    [
        ([1.3] * 7, 1.3, True),
        ([1.3] * 6 + [1.0], 1.3, True),
        ([1.3] * 5 + [1.0] * 2, 1.3, False),
        ([1.1] * 7, 1.1, False),
        ([1.3] * 7, 1.0, False),
        ([0.5] * 7, 0.5, False),
    ],
)
def test_what_is_slower(ratios: list[float], cpu: float, slower: bool) -> None:
    speed = SpeedReport({BOTH[0]: (1e-3,) * 7, BOTH[1]: tuple(1e-3 * ratio for ratio in ratios)})
    profiles = tuple(Profile("tract", 1e-3, seconds, seconds, ()) for seconds in (1e-3, cpu * 1e-3))
    assert Costs(BOTH, speed, profiles).is_slower is slower
    assert not Costs(BOTH, speed).is_slower


def test_operators_that_were_lost_and_won() -> None:
    change = OperatorChange.of({"Conv": 2, "Add": 1, "Cast": 1}, {"Conv": 2, "Add": 3})
    assert dict(change.counts) == {"Add": (1, 3), "Cast": (1, 0)}
    assert change.nodes == (4, 5)
    assert OperatorChange.of({}, {"Conv": 2}) == OperatorChange()
