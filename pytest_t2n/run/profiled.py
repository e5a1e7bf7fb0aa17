"""The profile of a passing cell for `--t2n-profile`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.records.cell import Cell
from pytest_t2n.run.failure_bundle import folder_name

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.profiling.profile import Profile

_LEAST = 30.0
"""Shortest time limit of a profile in seconds: the engine runs for 5."""


def write_profile(directory: Path, cell: Cell, result: ExportResult, timeout: float) -> None:
    """Write the profile of a cell as a table and as JSON; do nothing for an engine that is not a release of tract.

    Raises OSError, EngineRunError.
    """
    profile = profile_of(result, timeout)
    if profile is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / folder_name(cell.nodeid)
    path.with_name(f"{path.name}.txt").write_text(f"{cell.nodeid}\n{profile.describe(len(profile.lines))}\n", "utf-8")
    path.with_name(f"{path.name}.json").write_text(json.dumps({"case": cell.case, **asdict(profile)}) + "\n", "utf-8")


def profile_of(result: ExportResult, timeout: float) -> Profile | None:
    """Return the profile of an export; None for an engine that is not a release of tract. Raises EngineRunError."""
    from t2n_core.engine.tract.engine import TractEngine
    from t2n_core.nnef.reading.origins import origins_of
    from t2n_core.profiling.profile import profile_archive

    engine = result.target.engine()
    if not isinstance(engine, TractEngine):
        return None
    sample, path = result.samples[0], engine.paths[0]
    return profile_archive(
        engine,
        result.archive,
        sample.inputs,
        origins=origins_of(result.graph),
        path=path,
        sizes=sample.sizes,
        timeout=max(timeout, _LEAST),
    )
