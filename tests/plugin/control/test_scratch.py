"""Temporary files of a session that was killed are gone behind the next one."""

from __future__ import annotations

import os
import tempfile
import time

import pytest

from tests.plugin.control.test_resume import KILL, MODELS

KILL_ALL = KILL.replace("os.getpid()", "os.getppid() if 'PYTEST_XDIST_WORKER' in os.environ else os.getpid()")


@pytest.mark.parametrize("where", ["n0", "n2"])
def test_the_next_session_removes_what_a_killed_one_left(suite, where, monkeypatch):
    temporary = suite.path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    suite.pytester.makepyfile(MODELS.format(stop=KILL_ALL))
    suite.run("--t2n-report=site", mode=where, engines="0.23", alone=True)
    assert [name for name in os.listdir(temporary) if name.startswith("t2n-")], "it was killed"
    time.sleep(4)  # workers notice that their controller is gone
    suite.run("--t2n-report=site", "--t2n-resume", mode=where, engines="0.23", alone=True)
    assert [name for name in os.listdir(temporary) if name.startswith("t2n-")] == []
