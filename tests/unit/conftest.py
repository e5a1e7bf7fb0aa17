"""No test in this folder starts an engine; those that do are in `tests/contract`, under the same names."""

from __future__ import annotations

from typing import Any

import pytest

from t2n_core.engine.processes.worker_process import WorkerProcess


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("this test starts an engine: it belongs into tests/contract")


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail each test that starts the process of an engine."""
    monkeypatch.setattr(WorkerProcess, "__init__", _refuse)
