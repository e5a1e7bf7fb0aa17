"""What pages show of the archive in production runs where only numpy and the wheel of tract are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bare import bare_packages, run_alone
from tests.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "tutorial" / "production.md")
STREAMING = Page(ROOT / "docs" / "how-to" / "state" / "streaming.md")


def test_the_archive_is_served_without_pytorch(tmp_path: Path) -> None:
    for name, text in PAGE.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, PAGE.program_name], cwd=tmp_path, check=True, env=None)
    assert run_alone(bare_packages(tmp_path), "serve.py", folder=tmp_path) == "right to True (1, 50, 4)\n"


@pytest.mark.parametrize("tract", ["0.21", "0.22", "0.23"])
def test_a_pulsed_archive_is_run_without_pytorch(tract: str, tmp_path: Path) -> None:
    newest, before = re.findall(r"`?(tract\.nnef\(\).*\.into_runnable\(\))", STREAMING.path.read_text(encoding="utf-8"))
    assert newest in STREAMING.files["listen.py"]
    for name, text in STREAMING.files.items():
        typed = text.replace('"0.23"', f'"{tract}"')
        (tmp_path / name).write_text(typed if tract == "0.23" else typed.replace(newest, before), encoding="utf-8")
    subprocess.run([sys.executable, "export_stream.py"], cwd=tmp_path, check=True, env=None)
    packages = bare_packages(tmp_path, tract=tract)
    assert run_alone(packages, "listen.py", folder=tmp_path) == "right to True (1, 2, 37)\n"
