"""The markers and the fixture, by name. Loaded in every session, also for `--help`: no import but pytest's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

MARKER = FIXTURE = "nnef_export"
GENERATE = "nnef_generate"
"""The marker of a model that generates tokens."""
ENGINE_PARAM = "t2n_engine"
"""The parameter, and the fixture, that gives a test its engine."""
COLLECTOR, RUNNER, RECORDER, RETURNED = "t2n-collector", "t2n-runner", "t2n-recorder", "t2n-returned"
WORKER, CONTROLLER, REPORTS = "t2n-worker", "t2n-controller", "t2n-reports"
"""Names by which pytest's plugin manager knows the role objects."""


def is_case(node: pytest.Item | pytest.Function, fixtures: Sequence[str]) -> bool:
    """Return True for a test with the marker or the fixture; the plugin leaves all others alone."""
    return FIXTURE in fixtures or any(node.get_closest_marker(name) is not None for name in (MARKER, GENERATE))


def marker_of(node: pytest.Item | pytest.Function) -> str:
    """Return the name of a test's marker."""
    return MARKER if node.get_closest_marker(GENERATE) is None else GENERATE


__all__ = [
    "COLLECTOR",
    "CONTROLLER",
    "ENGINE_PARAM",
    "FIXTURE",
    "GENERATE",
    "MARKER",
    "RECORDER",
    "REPORTS",
    "RETURNED",
    "RUNNER",
    "WORKER",
    "is_case",
    "marker_of",
]
