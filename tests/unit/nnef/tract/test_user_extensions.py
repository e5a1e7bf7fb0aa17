"""Assertions of a user on sizes."""

from __future__ import annotations

import pytest

from t2n_core.nnef.tract.user_extensions import sizes_from_zero


@pytest.mark.parametrize("line", ["P >= 0", "0 <= P", "P > -1", "-1 < P", "P+1 >= 1"])
def test_a_size_may_be_zero(line: str) -> None:
    assert sizes_from_zero([f"tract_assert {line}"]) == {"P"}


@pytest.mark.parametrize("line", ["P >= 1", "P <= 9", "P == 0", "P >= N", "pp: P >= 0", "P >= 0 and P", "P*P >= 0"])
def test_other_assertions_leave_the_least_size(line: str) -> None:
    assert sizes_from_zero([f"tract_assert {line}", "tract_symbol P"]) == frozenset()
