"""`docs/tutorial/production.md`: what it serves runs where only numpy and the wheel of tract are."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

from t2n_core import TractNNEF
from t2n_core.engine.provision.index import download_wheel
from tests.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "tutorial" / "production.md")
ALONE = """
import sys

folder = {folder!r}
sys.path[:] = [path for path in sys.path if "packages" not in path] + [folder]
for name in ("torch", "t2n_core", "pytest"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{{name}} can be imported")
exec(compile(open("serve.py").read(), "serve.py", "exec"))
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with the package of tract, and a link to numpy."""
    folder, wheels = tmp_path / "bare", tmp_path / "wheels"
    for one in (folder, wheels):
        one.mkdir()
    with zipfile.ZipFile(download_wheel(Version(TractNNEF("0.23").version), wheels)) as wheel:
        wheel.extractall(folder)
    installed = Path(np.__file__).parents[1]
    for part in installed.glob("numpy*"):
        (folder / part.name).symlink_to(part, target_is_directory=True)
    return folder


def test_the_archive_is_served_without_pytorch(bare: Path, tmp_path: Path) -> None:
    for name, text in PAGE.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, PAGE.program_name], cwd=tmp_path, check=True, env=None)
    command = [sys.executable, "-I", "-S", "-c", ALONE.format(folder=str(bare))]
    served = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert served.returncode == 0, served.stderr
    assert served.stdout == "right to True (1, 50, 4)\n"
