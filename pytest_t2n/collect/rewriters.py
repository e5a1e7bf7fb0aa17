"""Rewriters of a test: from its marker, checked during collection, and from the fixture `nnef_rewriters`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest

FIXTURE = "nnef_rewriters"


def check_rewriters(value: Any, where: str) -> tuple[Any, ...]:
    """Return the rewriters of a list. Raises ValueError for anything else.

    This imports nothing: if there is a rewriter, its class is already loaded.
    """
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{where} is a list of rewriters, not {value!r}")
    specs = sys.modules.get("t2n_core.rewriter.specs")
    rewriters = tuple(value)
    for item in rewriters:
        if specs is None or not isinstance(item, specs.Rewriter):
            raise ValueError(f"{where}: {item!r} is not a rewriter; create one with t2n_core.rewriter.function(…)(…)")
    return rewriters


def request_rewriters(item: pytest.Item) -> None:
    """Request the fixture for a test that does not take it itself."""
    names = getattr(item, "fixturenames", None)
    if isinstance(names, list) and FIXTURE not in names:
        names.append(FIXTURE)


def rewriters_of(item: pytest.Item, marked: Iterable[Any]) -> tuple[Any, ...]:
    """Return the rewriters of the marker and of the fixture. Raises ValueError if the fixture returns anything else."""
    fixture_value = getattr(item, "funcargs", {}).get(FIXTURE)
    return (*marked, *check_rewriters(fixture_value, f"the fixture `{FIXTURE}`"))
