"""Fixtures of the contract tests."""

from __future__ import annotations

import os

import pytest

from t2n_core.torch_graph.proofs.regions import Regions
from tests.contract.usage import Usage


@pytest.fixture
def without_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every proof of a range for successful: a proof captures the model again, often for half of an export's time.

    For tests of large models that are not about ranges.
    """
    monkeypatch.setattr(Regions, "prove", lambda *_: True)


@pytest.fixture(scope="session")
def usage(tmp_path_factory: pytest.TempPathFactory) -> Usage:
    """What the cases use, noted in a folder of all workers of xdist."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return Usage(folder / "usage")
