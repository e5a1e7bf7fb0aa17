"""Rewriters of a test: from its marker, checked while collecting, and from the fixture `nnef_rewriters`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest

FIXTURE = "nnef_rewriters"


def checked_rewriters(value: Any, where: str) -> tuple[Any, ...]:
    """Return the rewriters of a list. Raises ValueError for anything else.

    Nothing is imported for it: whoever made a rewriter has loaded its class.
    """
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{where} is a list of rewriters, not {value!r}")
    specs = sys.modules.get("t2n_core.rewriter.specs")
    found = tuple(value)
    for one in found:
        if specs is None or not isinstance(one, specs.Rewriter):
            raise ValueError(f"{where}: {one!r} is no rewriter; make one with t2n_core.rewriter.function(…)(…)")
    return found


def request_rewriters(item: pytest.Item) -> None:
    """Have the fixture set up for a test that does not take it itself."""
    names = getattr(item, "fixturenames", None)
    if isinstance(names, list) and FIXTURE not in names:
        names.append(FIXTURE)


def rewriters_of(item: pytest.Item, marked: Iterable[Any]) -> tuple[Any, ...]:
    """Return the rewriters of the marker and of the fixture. Raises ValueError if the fixture returns anything else."""
    given = getattr(item, "funcargs", {}).get(FIXTURE)
    return (*marked, *checked_rewriters(given, f"the fixture `{FIXTURE}`"))


__all__ = ["FIXTURE", "checked_rewriters", "request_rewriters", "rewriters_of"]
