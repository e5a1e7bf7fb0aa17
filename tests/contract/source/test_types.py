"""The types of the packages, checked beside the other tests, since mypy takes one core for half a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_mypy_finds_nothing() -> None:
    pytest.importorskip("mypy", reason="tox -e typing, or the group `typing`, has it")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
