"""Commands of others end with the process that ran them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from t2n_core.engine.processes.environment import worker_environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
KILLED = """
import os, signal, threading
from pathlib import Path
from t2n_core.engine.processes.command import execute

threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
execute(["sh", "-c", "echo $$ > pids; sleep 60 & echo $! >> pids; wait"], 60.0, None, os.environ)
"""


def test_a_command_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False, timeout=60, env=worker_environment())
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    give_up = time.monotonic() + 30
    while any(map(_runs, pids)) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():  # a zombie that nobody has waited for is dead, and answers signals
        with contextlib.suppress(OSError):
            return stat.read_text().rpartition(")")[2].split()[0] != "Z"
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
