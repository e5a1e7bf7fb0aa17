"""The code whose digest decides whether a stored result is used again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import t2n_core
from pytest_t2n.cli.judging.reuse import JUDGING

HOME = Path(t2n_core.__file__).parents[1]
JUDGES = ("t2n_core.parity.check", "t2n_core.check.mismatch.author")
ROOMS = ("t2n_core.parity.", "t2n_core.check.", "t2n_core.dialect", "t2n_core.nnef.reading", "t2n_core.level")
"""What decides on a result; other rooms are loaded for paths, errors and text."""


def test_the_digest_covers_all_that_judges_a_bundle() -> None:
    names = f"[n for n in sys.modules if n.startswith({ROOMS})]"
    script = f"import sys, {', '.join(JUDGES)}\nprint(*(sys.modules[n].__file__ for n in {names}))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], cwd=HOME, capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    files = [path.relative_to(HOME).as_posix() for path in map(Path, loaded) if path.name != "__init__.py"]
    assert {"t2n_core/parity/check.py", "t2n_core/check/mismatch/author.py"} <= set(files)
    assert [file for file in files if not any(f"{file}/".startswith(f"{covered}/") for covered in JUDGING)] == []
