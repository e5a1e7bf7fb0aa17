"""The parts of a page that is too large for one file: scripts in a folder beside it, each loaded on demand."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_t2n.report.payload import Payload
from t2n_core.files import write_whole

FOLDER = "page-"
"""Prefix of the folder's name; a digest of the grid follows, so that a page never loads parts of another one."""


def write_parts(payload: Payload, directory: Path) -> list[Path]:
    """Write the blocks of evidence and of graphs, and return their files, at least one. Raises OSError."""
    folder = directory / f"{FOLDER}{hashlib.sha256(payload.grid.encode()).hexdigest()[:12]}"
    found = [_write(folder, f"evidence-{number}", block) for number, block in enumerate(payload.evidence())]
    return found + [_write(folder, f"graphs-{number}", block) for number, block in enumerate(payload.graphs)]


def _write(folder: Path, name: str, block: str) -> Path:
    path = folder / f"{name}.js"
    write_whole(path, f't2nPart("{name}","{block}");\n')
    return path
