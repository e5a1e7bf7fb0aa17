"""The digest of a project's Python files."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_t2n.control.sources import source_digest


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("A = 1")
    digest = source_digest(tmp_path)
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zeros.py").symlink_to("/dev/zero")
    assert source_digest(tmp_path) == digest


def test_a_large_file_counts_with_its_size(tmp_path: Path) -> None:
    large = tmp_path / "large.py"
    with large.open("wb") as file:
        file.truncate(6 << 30)
    digest = source_digest(tmp_path)
    with large.open("r+b") as file:
        file.truncate(5 << 30)
    assert source_digest(tmp_path) != digest
