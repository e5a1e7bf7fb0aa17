"""Where the plugin's state hangs on pytest's objects, and what each session needs to know before anything is loaded.

pytest loads this in every session of a user who has the plugin installed, also for `--help`: no import but pytest's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from io import FileIO

    from pytest_t2n.collect.cells import Cell
    from pytest_t2n.collect.selection import Selection
    from pytest_t2n.config.engines import SelectedEngine
    from pytest_t2n.config.settings import Settings
    from pytest_t2n.control.controller import Controller
    from pytest_t2n.expect.entries import Expectations
    from pytest_t2n.run.cell_run import CellRun, ExportCache

MARKER = FIXTURE = "nnef_export"
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

SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
ENGINES: pytest.StashKey[Sequence[SelectedEngine]] = pytest.StashKey()
CACHE: pytest.StashKey[ExportCache] = pytest.StashKey()
CONTROLLER: pytest.StashKey[Controller] = pytest.StashKey()
EXPECTATIONS: pytest.StashKey[Expectations] = pytest.StashKey()
SELECTION: pytest.StashKey[Selection] = pytest.StashKey()
DESELECTED: pytest.StashKey[bool] = pytest.StashKey()
KEPT: pytest.StashKey[FileIO] = pytest.StashKey()
"""A worker's file of records."""
TOLD: pytest.StashKey[dict[str, str]] = pytest.StashKey()
"""Graphs that this process has put on a report, by key, with the cell that did it."""
CELL: pytest.StashKey[Cell] = pytest.StashKey()
BAD_MARK: pytest.StashKey[str] = pytest.StashKey()
RUN: pytest.StashKey[CellRun] = pytest.StashKey()
WORKER_INPUT = "t2n"


def is_case(node: pytest.Item | pytest.Function, fixtures: Sequence[str]) -> bool:
    """Whether a test is for this plugin at all: it has the marker, or takes the fixture."""
    return FIXTURE in fixtures or node.get_closest_marker(MARKER) is not None


def worker_input(config: pytest.Config) -> dict[str, Any]:
    """What the controller gave this worker."""
    return getattr(config, "workerinput", {}).get(WORKER_INPUT, {})  # type: ignore[no-any-return]


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


__all__ = [
    "BAD_MARK",
    "CACHE",
    "CELL",
    "CONTROLLER",
    "DESELECTED",
    "ENGINES",
    "EXPECTATIONS",
    "FIXTURE",
    "KEPT",
    "MARKER",
    "MARKER_HELP",
    "RUN",
    "SELECTION",
    "SETTINGS",
    "TOLD",
    "WORKER_INPUT",
    "is_case",
    "is_worker",
    "worker_input",
]
