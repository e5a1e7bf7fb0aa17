"""Fixtures of the contract tests."""

from __future__ import annotations

import os

import pytest

from tests.contract.usage import Usage


@pytest.fixture(scope="session")
def usage(tmp_path_factory: pytest.TempPathFactory) -> Usage:
    """What the cases use, noted in a folder of all workers of xdist."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return Usage(folder / "usage")
