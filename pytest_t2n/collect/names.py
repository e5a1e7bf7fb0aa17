"""The marker and the fixture, by name. Loaded in every session, also for `--help`: no import but pytest's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

MARKER = FIXTURE = "nnef_export"
COLLECTOR, RUNNER, RECORDER = "t2n-collector", "t2n-runner", "t2n-recorder"
WORKER, CONTROLLER = "t2n-worker", "t2n-controller"
"""Names by which pytest's plugin manager knows the role objects."""
MARKER_HELP = (
    f'{MARKER}(target="tract", *, versions=None, dynamic_axes=None, tolerance=None, input_names=None, '
    'output_names=None, inputs=None, fn_name="forward", capture="export", nnef_variable_naming_scheme="natural", '
    "rewriters=None, strict_rewrites=False, **target_options): the test returns "
    "(model, inputs); the model is exported to NNEF and must compute the same numbers in every selected engine. "
    "target: tract, khronos or a list of both; versions: narrows the selected tract versions (grammar of --t2n-tract); "
    'dynamic_axes: {"input": {axis: "symbol"}}; tolerance: a level; inputs: more input sets to check; fn_name: the '
    "method to export; capture: export, or trace for what torch.export refuses; nnef_variable_naming_scheme: natural, "
    "raw or numeric; rewriters: what adapts the model while it is exported; others: options of the target"
)


def is_case(node: pytest.Item | pytest.Function, fixtures: Sequence[str]) -> bool:
    """Return True for a test with the marker or the fixture; the plugin leaves all others alone."""
    return FIXTURE in fixtures or node.get_closest_marker(MARKER) is not None


__all__ = [
    "COLLECTOR",
    "CONTROLLER",
    "FIXTURE",
    "MARKER",
    "MARKER_HELP",
    "RECORDER",
    "RUNNER",
    "WORKER",
    "is_case",
]
