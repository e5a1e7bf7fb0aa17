"""The names of the markers and the fixtures. Loaded in every session, also for `--help`: imports only pytest."""

from __future__ import annotations

from collections.abc import Container, Sequence

import pytest

MARKER = FIXTURE = "nnef_export"
GENERATE = "nnef_generate"
"""The marker of a model that generates tokens."""
PROGRAM = "nnef_program"
"""The marker of a program of several archives."""
FILE = "nnef_file"
"""The marker of a file that exists: an ONNX model or an archive."""
FIXTURES = (FIXTURE, "nnef_check")
"""The fixtures of a test that exports or checks by itself."""
ENGINE_PARAM = "t2n_engine"
"""The parameter, and the fixture, for the engine of a test."""
COLLECTOR, RUNNER, RECORDER, RETURNED = "t2n-collector", "t2n-runner", "t2n-recorder", "t2n-returned"
WORKER, CONTROLLER, REPORTS = "t2n-worker", "t2n-controller", "t2n-reports"
"""Names of the role objects in pytest's plugin manager."""
PROPERTY = "t2n"
"""Name of the user property with the records of a report: lines of JSON, a graph before its cell.

It is text, because a value that is not of a built-in type makes execnet drop the report and all later ones.
"""
_OTHERS = (GENERATE, PROGRAM, FILE)


def is_case(node: pytest.Item | pytest.Function, fixtures: Sequence[str]) -> bool:
    """Return whether a test has a marker or fixture of the plugin, which ignores all others."""
    marked = any(node.get_closest_marker(name) is not None for name in (MARKER, *_OTHERS))
    return marked or takes_fixture(fixtures)


def takes_fixture(names: Container[str]) -> bool:
    """Return whether one of these names is a fixture of a test that exports or checks by itself."""
    return any(name in names for name in FIXTURES)


def marker_of(node: pytest.Item | pytest.Function) -> str:
    """Return the name of a test's marker."""
    return next((name for name in _OTHERS if node.get_closest_marker(name) is not None), MARKER)
