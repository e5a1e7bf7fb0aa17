"""Temporary folders: removed by whoever made them, and those of killed processes by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from t2n_core import scratch
from t2n_core.scratch import ScratchFolder, home_in_memory, scratch_folder

MAKE = """
import sys, time
from t2n_core.scratch import ScratchFolder
folder = ScratchFolder()
(folder.path / "model.tar").write_bytes(b"x")
print(folder.path, flush=True)
time.sleep(60)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    scratch._sweep.cache_clear()
    return tmp_path


def test_a_folder_leaves_nothing(home: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == home
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "a").mkdir()
    assert list(home.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_what_is_in_use_stays(home: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", MAKE], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for _ in range(2)
    ]
    folders = [Path(process.stdout.readline().strip()) for process in started if process.stdout]
    try:
        started[0].send_signal(signal.SIGKILL)
        started[0].wait()
        assert all(folder.exists() for folder in folders)
        (home / "t2n-mine").mkdir()
        (home / "t2n-0123456789abcdef").symlink_to(home / "t2n-mine")
        new_folder = ScratchFolder()
        assert [folder.exists() for folder in folders] == [False, True]
        assert (home / "t2n-mine").exists()
        new_folder.remove()
    finally:
        for process in started:
            process.kill()
            process.wait()
    scratch._sweep.cache_clear()
    with scratch_folder():
        pass
    assert sorted(path.name for path in home.iterdir()) == ["t2n-0123456789abcdef", "t2n-mine"]


def test_a_lock_without_a_folder_is_swept_unless_it_is_held(home: Path) -> None:
    left, active_lock = (home / f"t2n-{digit * 16}.lock" for digit in "ab")
    left.touch()
    with FileLock(active_lock), scratch_folder():
        assert (left.exists(), active_lock.exists()) == (False, True)


def test_a_folder_whose_lock_was_swept_while_it_was_made_is_made_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    make = Path.mkdir

    def mkdir(self: Path, *given: int, **more: int) -> None:
        make(self, *given, **more)
        if self.name.startswith("t2n-"):
            if not made:
                self.with_name(f"{self.name}.lock").unlink()
            made.append(self)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with scratch_folder() as folder:
        assert made == [made[0], folder]
        assert [path.exists() for path in made] == [False, True]
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("free", "found"), [(100, True), (99, False)])
def test_memory_is_taken_where_it_has_room(tmp_path, monkeypatch, free, found):
    monkeypatch.setattr("t2n_core.scratch._IN_MEMORY", tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    assert home_in_memory(100) == (tmp_path if found else None)


def test_there_may_be_no_memory_to_write_to(tmp_path, monkeypatch):
    monkeypatch.setattr("t2n_core.scratch._IN_MEMORY", tmp_path / "none")
    assert home_in_memory(0) is None
