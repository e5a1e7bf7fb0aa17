"""The day of a release, typed in a clone with an index that has a wheel of the newest release under another number."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.provision.store import EngineStore
from tests.local_index import LocalIndex
from tests.pages import ROOT
from tests.releases import NEWEST

RENAMED = b"tract_core_cumsum", b"tract_core_cumsux"
MINUTES = 25
NEXT = "0.99.0"


@pytest.fixture
def index(tmp_path: Path, resolved_engine: Callable[[str], ResolvedEngine]) -> LocalIndex:
    """An index with a release in which an operator is called otherwise than in the newest one."""
    (tmp_path / "index" / "tract").mkdir(parents=True)
    index = LocalIndex(tmp_path / "index")
    library = resolved_engine(NEWEST).library.read_bytes()
    assert RENAMED[0] in library
    index.add(NEXT, library.replace(*RENAMED))
    return index


@pytest.fixture
def cache(tmp_path: Path, resolved_engine: Callable[[str], ResolvedEngine]) -> Path:
    """A cache of engines with the newest release alone."""
    stored = resolved_engine(NEWEST).library.parents[1]
    relative_path = stored.relative_to(EngineStore().cache_dir)
    shutil.copytree(stored, tmp_path / "cache" / relative_path)
    return tmp_path / "cache"


@pytest.mark.nightly
def test_the_tables_and_the_note_of_a_new_release(index: LocalIndex, cache: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    wheels = clone / "t2n_core" / "engine" / "provision" / "known_wheels.tsv"
    environment = {
        **os.environ,
        "PYTHONPATH": str(clone),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.root.as_uri(),
        "T2N_CACHE_DIR": str(cache),
    }
    command = [sys.executable, "-m", "tools.release_day", "--quick"]
    done = subprocess.run(
        command, cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=60 * MINUTES
    )
    assert done.returncode == 0, done.stderr
    note = (clone / "build" / f"tract-{NEXT}" / "note.md").read_text("utf-8")
    assert "- `tract_core_cumsux` of tract_core: input: tensor<scalar>, axis: integer" in note
    assert "## Operators that are gone\n\n- `tract_core_cumsum`" in note
    assert "`tract_core_cumsum`, 40 of them: right before, refused now" in note
    assert " hold as they are written." in note
    releases = (clone / "tools" / "spec_sources" / "tract_releases.txt").read_text("utf-8").split()
    assert releases[-1] == NEXT
    rows = (clone / "tools" / "spec_sources" / "tract_operators.tsv").read_text("utf-8").splitlines()
    assert any(row.startswith(f"tract_core\ttract_core_cumsum\tprimitive\t{NEWEST}\t{NEWEST}\t") for row in rows)
    assert any(row.startswith(f"tract_core\ttract_core_cumsux\tprimitive\t{NEXT}\t{NEXT}\t") for row in rows)
    assert f"tract-{NEXT}-cp311" in wheels.read_text("utf-8")
    subprocess.run([sys.executable, "-m", "tools.build_spec_tables", "--check"], cwd=clone, env=environment, check=True)
