"""The run line of a session: its engines, and where it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.schema import SCHEMA, EngineLine, PlatformLine, RunLine
from t2n_core.engine.processes.environment import ENGINE_THREADS
from t2n_core.engine.provision.resolved import CPU
from t2n_core.engine.tiers import NATIVE, tier_environment, usable_features
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance


def run_line(
    engines: Iterable[SelectedEngine],
    level: TractCheckTolerance = DEFAULT_LEVEL,
    arguments: Sequence[str] = (),
    *,
    transforms: Sequence[str] = (),
    source: str = "",
    options: str = "",
    exporters: Iterable[PlatformLine] = (),
    here: PlatformLine | None = None,
) -> RunLine:
    """Return the line of a session that starts now in this process.

    `source` is the digest of the tested code, `options` of hidden arguments. `exporters` are the platforms on
    which a bundle was exported, `here` is the engines' platform if they run elsewhere.
    """
    here = here or this_platform()
    platforms = {line.key: line for line in (here, *exporters)}
    return RunLine(
        schema=SCHEMA,
        started=start_time(),
        engines=[engine_line(engine, here) for engine in engines],
        versions=here.versions,
        platform=f"{here.system} {here.machine}, {here.cores} CPUs",
        level=level,
        transforms=list(transforms),
        arguments=list(arguments),
        platforms=list(platforms.values()),
        source=source,
        options=options,
    )


def engine_line(engine: SelectedEngine, here: PlatformLine) -> EngineLine:
    """Return the line of an engine on this platform."""
    resolved = engine.resolved or {}
    line = EngineLine(
        engine.target,
        engine.version,
        engine.label,
        requested=engine.requested,
        kind=resolved.get("kind", ""),
        sha256=resolved.get("sha256", ""),
        environment=dict(ENGINE_THREADS),
        platform=engine.platform,
        exporter=engine.exporter,
        exporter_version=engine.exporter_version,
    )
    if engine.resolved is None:
        return line
    tier = resolved.get("tier", NATIVE)
    return msgspec.structs.replace(
        line,
        tier=tier,
        runtime=resolved.get("runtime", CPU),
        kernels=list(usable_features(here.features, tier, here.machine)),
        environment={**ENGINE_THREADS, **tier_environment(tier)},
    )


def start_time() -> str:
    """Return the current time, UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
