"""The names of the markers and the fixture. Loaded in every session, also for `--help`: imports only pytest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

MARKER = FIXTURE = "nnef_export"
GENERATE = "nnef_generate"
"""The marker of a model that generates tokens."""
PROGRAM = "nnef_program"
"""The marker of a program of several archives."""
ENGINE_PARAM = "t2n_engine"
"""The parameter, and the fixture, for the engine of a test."""
COLLECTOR, RUNNER, RECORDER, RETURNED = "t2n-collector", "t2n-runner", "t2n-recorder", "t2n-returned"
WORKER, CONTROLLER, REPORTS = "t2n-worker", "t2n-controller", "t2n-reports"
"""Names of the role objects in pytest's plugin manager."""
PROPERTY = "t2n"
"""Name of the user property with the records of a report: lines of JSON, a graph before its cell.

It is text, because a value that is not of a built-in type makes execnet drop the report and all later ones.
"""
_OTHERS = (GENERATE, PROGRAM)


def is_case(node: pytest.Item | pytest.Function, fixtures: Sequence[str]) -> bool:
    """Return whether a test has the marker or the fixture; the plugin ignores all others."""
    return FIXTURE in fixtures or any(node.get_closest_marker(name) is not None for name in (MARKER, *_OTHERS))


def marker_of(node: pytest.Item | pytest.Function) -> str:
    """Return the name of a test's marker."""
    return next((name for name in _OTHERS if node.get_closest_marker(name) is not None), MARKER)
