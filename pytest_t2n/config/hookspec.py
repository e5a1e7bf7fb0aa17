"""The hooks that a conftest.py or a plugin may implement, in addition to pytest's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_t2n.records.cell import SelectedEngine
    from t2n_core.exporters.exporter import Exporter


def pytest_t2n_engines(config: pytest.Config, engines: list[SelectedEngine]) -> None:
    """Inspect the engines of a session before tests are collected. The list may be changed in place.

    Called once, in the process that sees all reports. Raise pytest.UsageError to end the session.
    """


@pytest.hookspec(firstresult=True)
def pytest_t2n_judgement(item: pytest.Item, engine: SelectedEngine) -> Mapping[str, Any] | None:
    """Return defaults for arguments missing in a test's marker, on an engine: `{"atol": 1e-3}`, `{"timeout": 120}`.

    The arguments are the marker's: `tolerance`, `atol`, `rtol`, `metric`, `bound`, `reference`, `timeout`. The
    first result that is not None counts. Called in the process that runs the test, once for each check.
    """


def pytest_t2n_exporters(config: pytest.Config) -> list[type[Exporter]] | None:
    """Return further exporters, subclasses of `t2n_core.Exporter`, which --t2n-exporter and the marker may name.

    Called in each process of a session.
    """


def pytest_t2n_record(config: pytest.Config, record: Any) -> None:
    """Inspect the record of a cell, a `pytest_t2n.records.schema.CellLine`, once it is final.

    Called once for each cell, in the process that sees all reports.
    """


def pytest_t2n_report(config: pytest.Config, directory: Path) -> str | None:
    """Inspect the report of --t2n-report once it is written; files may be added. The result is added to the summary.

    Called once, at the end of the session, in the process that sees all reports.
    """
