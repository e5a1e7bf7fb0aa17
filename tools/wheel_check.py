"""Build what is published, check it as an index does, and use each form of it in a separate environment.

python tools/wheel_check.py DIST

The form with torch runs README's first test and writes a bundle; the small form judges that bundle. Needs the packages
`build` and `twine`, pip's index, and engines from the cache or the index.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
MOST_MEGABYTES = 130
"""Largest size of the form without torch, beside Python and its pip."""
VERSION = "0.23"


def main(dist: Path) -> None:
    """Build into `dist`, which must be new or empty, and check each form. Raises CalledProcessError, SystemExit."""
    if dist.exists() and any(dist.iterdir()):
        raise SystemExit(f"{dist} is not empty: what lies there would be checked in place of a new build")
    call(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    call(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
    (wheel,) = dist.glob("*.whl")
    with TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "test_encoder.py").write_text(first_test(), encoding="utf-8")
        full = environment(work / "full", f"{wheel}[torch]")
        call(
            full / "pytest", "test_encoder.py", f"--t2n-tract={VERSION}", "--t2n-strict", "--t2n-bundle=bundle", at=work
        )
        before = megabytes(work / "empty", None)
        small = environment(work / "small", str(wheel))
        size = megabytes(work / "small", small) - before
        print(f"the small form: {size:.0f} MB")
        if size > MOST_MEGABYTES:
            raise SystemExit(f"the form without torch has {size:.0f} MB, more than {MOST_MEGABYTES}")
        call(small / "python", "-c", NO_TORCH)
        call(small / "t2n", "--version", at=work)
        call(small / "t2n", "matrix", "run", "--bundle", "bundle", f"--tract={VERSION}", at=work)
        call(small / "python", "-W", "error", "-m", "pytest", "--version", at=work)
        call(small / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", f"{wheel}[upstream]")
        call(small / "python", "-c", NO_TORCH.replace('"sympy", ', ""))
        call(small / "t2n", "profile", "bundle", f"--engine={VERSION}", at=work)


NO_TORCH = """
import importlib.util
modules = [name for name in ("torch", "sympy", "nnef") if importlib.util.find_spec(name)]
assert not modules, modules
"""


def first_test() -> str:
    """Return the first test of README."""
    match = re.search(
        r'```python title="test_encoder\.py"\n(.*?)```', (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert match is not None
    return match[1]


def environment(folder: Path, package: str) -> Path:
    """Return the folder of programs of a new environment with a package."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    call(programs / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", package)
    return programs


def megabytes(folder: Path, programs: Path | None) -> float:
    """Return the size of an environment, made if it is not there."""
    if programs is None:
        venv.create(folder, with_pip=True)
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink()) / 1e6


def call(*words: object, at: Path = ROOT) -> None:
    """Run a command, with no module of the checkout in reach. Raises CalledProcessError."""
    print("$", *words, flush=True)
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([str(word) for word in words], cwd=at, env=inherited, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
