"""An environment of numpy and the wheel of tract, where neither PyTorch nor this package is."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
from packaging.version import Version

from t2n_core import TractNNEF
from t2n_core.engine.provision.index import download_wheel

_ALONE = """
import sys

folder, script, *sys.argv[1:] = sys.argv[1:]
sys.path[:] = [path for path in sys.path if "packages" not in path] + [folder]
for name in ("torch", "t2n_core", "pytest"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{name} can be imported")
exec(compile(open(script).read(), script, "exec"))
"""


def bare_packages(folder: Path, *more: str, tract: str = "0.23") -> Path:
    """Return a folder with a release of tract, and links to numpy and more; both folders in `folder` are made."""
    packages, wheels = folder / "bare", folder / "wheels"
    for directory in (packages, wheels):
        directory.mkdir()
    with zipfile.ZipFile(download_wheel(Version(TractNNEF(tract).version), wheels)) as wheel:
        wheel.extractall(packages)
    installed = Path(np.__file__).parents[1]
    for part in (part for name in ("numpy", *more) for part in installed.glob(f"{name}*")):
        (packages / part.name).symlink_to(part, target_is_directory=True)
    return packages


def run_alone(packages: Path, script: str, *arguments: str, folder: Path) -> str:
    """Return what a script in `folder` prints, with these packages and Python's own alone. It must succeed."""
    command = [sys.executable, "-I", "-S", "-c", _ALONE, str(packages), script, *arguments]
    served = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert served.returncode == 0, served.stderr
    return served.stdout
