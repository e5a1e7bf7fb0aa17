"""The marker and the fixture, by name. Loaded in every session, also for `--help`: no import but pytest's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

MARKER = FIXTURE = "nnef_export"
COLLECTOR, RUNNER, RECORDER = "t2n-collector", "t2n-runner", "t2n-recorder"
WORKER, CONTROLLER = "t2n-worker", "t2n-controller"
"""Names by which pytest's plugin manager knows the role objects."""


def is_case(node: pytest.Item | pytest.Function, fixtures: Sequence[str]) -> bool:
    """Return True for a test with the marker or the fixture; the plugin leaves all others alone."""
    return FIXTURE in fixtures or node.get_closest_marker(MARKER) is not None


__all__ = [
    "COLLECTOR",
    "CONTROLLER",
    "FIXTURE",
    "MARKER",
    "RECORDER",
    "RUNNER",
    "WORKER",
    "is_case",
]
