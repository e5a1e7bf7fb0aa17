"""A check of many cases as one test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def check_each(cases: Iterable[Case], check: Callable[[Case], None]) -> None:
    """Call `check` with each case, and fail with the errors of all cases that do not pass, or if there is no case."""
    every, errors = list(cases), []
    for case in every:
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case {case}")
            errors.append(error)
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} of {len(every)} cases", errors)
    assert every, "no cases"
