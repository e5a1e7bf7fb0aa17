"""What the suites share: one thread per process, and how much of a suite is run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance.checks.aten_outcomes import PROPERTY


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete",
        action="store_true",
        help="Run the whole product of every suite instead of the selection in which every pair of settings occurs",
    )
    parser.addoption(
        "--capture-way",
        choices=("export", "trace"),
        default="export",
        help="How the suites `recurrent` and `int8` capture their nets: torch.export, or torch.jit.trace",
    )
    parser.addoption(
        "--aten-outcomes",
        metavar="FILE",
        help="Write what became of each sample of the suites `aten` and `aten_dynamic`",
    )
    parser.addoption(
        "--aten-dtypes", metavar="NAMES", help="Run the operators of suite `aten` in these dtypes: float64,int8,…"
    )


def pytest_configure(config: pytest.Config) -> None:
    torch.set_num_threads(1)
    outcomes_path = config.getoption("aten_outcomes")
    if outcomes_path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_AtenOutcomes(Path(outcomes_path)))


class _AtenOutcomes:
    """Writes the samples of each cell as its report arrives; lives on the controller only."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == PROPERTY:
                self._file.write(f"{value}\n")
                self._file.flush()

    def pytest_unconfigure(self) -> None:
        self._file.close()
