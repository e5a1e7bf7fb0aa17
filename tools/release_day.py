"""Add releases of tract that the index has and this checkout does not: tables, digests, and a note for each.

python -m tools.release_day           # what is new since the newest release of the tables
python -m tools.release_day --quick   # without the suites and ONNX's tests

Writes the spec tables and `known_wheels.tsv`, and `build/tract-VERSION/note.md` for each release, which names what a
person has to write. The scheduled workflow `release-day.yml` opens a pull request with them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from pytest_t2n.cli.command import main as t2n
from t2n_core.engine.provision.index import list_versions
from t2n_core.engine.provision.known import known_wheels
from t2n_core.engine.provision.store import EngineStore
from tools import build_spec_tables
from tools import known_wheels as digests

ROOT = Path(__file__).parents[1]


def new_releases() -> list[Version]:
    """Return the releases of the index that are newer than the newest known one, ascending; no pre-releases."""
    newest = max(map(Version, known_wheels()))
    return [
        version for version in list_versions(EngineStore().cache_dir) if version > newest and not version.is_prerelease
    ]


def add_release(release: Version, *words: str) -> Path:
    """Scan a release, write its tables and digests, and return its note. Raises RuntimeError if the scan fails."""
    note = ROOT / "build" / f"tract-{release}" / "note.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    if t2n(["releases", "scan", str(release), "--checkout", str(ROOT), "--write", "-o", str(note), *words]):
        raise RuntimeError(f"the scan of tract {release} failed")
    build_spec_tables.main([])
    digests.main()
    return note


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release_day", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the suites and ONNX's tests")
    options = parser.parse_args(arguments)
    releases = new_releases()
    for release in releases:
        began = time.monotonic()
        note = add_release(release, *(["--quick"] if options.quick else []))
        print(f"tract {release}: {note} after {(time.monotonic() - began) / 60:.0f} minutes")
    if not releases:
        print(f"nothing is newer than tract {max(map(Version, known_wheels()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
