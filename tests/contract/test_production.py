"""What pages show of the archive in production runs where only numpy and the wheel of tract are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.bare import bare_packages, run_alone
from tests.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "tutorial" / "production.md")
STREAMING = Page(ROOT / "docs" / "how-to" / "state" / "streaming.md")


def test_the_archive_is_served_without_pytorch(tmp_path: Path) -> None:
    for name, text in PAGE.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, PAGE.program_name], cwd=tmp_path, check=True, env=None)
    assert run_alone(bare_packages(tmp_path), "serve.py", folder=tmp_path) == "right to True (1, 50, 4)\n"


def test_a_pulsed_archive_is_run_without_pytorch(tmp_path: Path) -> None:
    for name, text in STREAMING.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "export_stream.py"], cwd=tmp_path, check=True, env=None)
    assert run_alone(bare_packages(tmp_path), "listen.py", folder=tmp_path) == "right to True (1, 2, 37)\n"
