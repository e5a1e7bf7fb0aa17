"""A run on hosts with networks of their own; `python -m conformance.lab.plant.cluster` tries more faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="pip install 'pytest-t2n[dask]'")

from conformance.lab.plant.cluster.hosts import why_not

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(bool(why_not()), reason=f"hosts as network namespaces: {why_not()}")
def test_a_killed_client_and_a_killed_host_cost_nothing() -> None:
    faults = ("a host killed", "the client killed")
    command = [sys.executable, "-m", "conformance.lab.plant.cluster", "--hosts", "2", "--cases", "40"]
    for fault in faults:
        command += ["--fault", fault]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    summaries = [line.rpartition(", ")[0] for line in done.stdout.splitlines() if line.startswith(faults)]
    assert summaries == [f"{fault}: 0 lost, 0 double, the same bytes, nothing left" for fault in faults], (
        done.stdout + done.stderr
    )
    assert done.returncode == 0
