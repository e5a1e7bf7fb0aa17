"""The run line of a session: its engines, and the versions of Python and of its packages."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata

from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.schema import SCHEMA, EngineLine, RunLine
from t2n_core.check.level import TractCheckTolerance

_DISTRIBUTIONS = ("pytest-t2n", "torch", "numpy", "nnef", "nnef-tools", "pytest", "pytest-xdist")


def run_line(engines: Iterable[SelectedEngine], level: TractCheckTolerance, arguments: Sequence[str]) -> RunLine:
    """Return the line of a session that starts now in this process."""
    return RunLine(
        schema=SCHEMA,
        started=start_time(),
        engines=[engine_line(engine) for engine in engines],
        versions=package_versions(),
        platform=f"{sys.platform} {platform.machine()}, {os.cpu_count()} CPUs",
        level=level,
        arguments=list(arguments),
    )


def engine_line(engine: SelectedEngine) -> EngineLine:
    """Return the line of an engine."""
    resolved = engine.resolved or {}
    return EngineLine(
        engine.target,
        engine.version,
        engine.label,
        requested=engine.requested,
        kind=resolved.get("kind", ""),
        sha256=resolved.get("sha256", ""),
    )


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the distributions that decide about results."""
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def start_time() -> str:
    """Return the time now, UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


__all__ = ["engine_line", "package_versions", "run_line", "start_time"]
