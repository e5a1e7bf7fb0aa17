"""Statements and engine operators of nets are those on record: a change of either is meant."""

from __future__ import annotations

import pytest

from tools.operator_counts import HEAD, NETS, RELEASES, count, recorded

NEWEST = RELEASES[-1]
CASES = [
    pytest.param(net, release, marks=[] if release == NEWEST else pytest.mark.nightly)
    for net in NETS
    for release in RELEASES
]


@pytest.mark.parametrize(("net", "release"), CASES)
def test_the_counts_are_those_on_record(net: str, release: str) -> None:
    before, now = recorded()[net, release], count(net, release)
    changes = [f"{what}: {old} -> {new}" for what, old, new in zip(HEAD, before, now, strict=True) if old != new]
    assert not changes, "\n".join([*changes, "if this is meant, python -m tools.operator_counts writes it anew"])


def test_the_record_has_all_nets() -> None:
    assert recorded().keys() == {(net, release) for net in NETS for release in RELEASES}
