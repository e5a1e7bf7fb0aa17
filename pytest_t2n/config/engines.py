"""The engines of a session: resolved once, then selected for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import SelectedEngine
from t2n_core.errors import EngineResolveError, InputError, T2NError

if TYPE_CHECKING:
    from packaging.version import Version

    from t2n_core.engine import ResolvedEngine
    from t2n_core.engine.protocol import Engine
    from t2n_core.engine.provision.versions import SpecItem

KHRONOS_VERSION = "1.0.5"
ONNXRUNTIME = "onnxruntime"
"""The target of the engine that runs the ONNX files of other exporters."""


def load_resolver() -> Callable[..., list[ResolvedEngine]]:
    """Return `resolve_engines`, imported late, so that a session without engines never pays for it."""
    from t2n_core.engine import resolve_engines

    return resolve_engines


def select_engines(settings: Settings, progress: Callable[[str, str], None] | None = None) -> list[SelectedEngine]:
    """Return the engines in the settings: tract versions ascending, then binaries, khronos last.

    They are provisioned, unless the session runs no test.

    A version has one engine per kernel tier and runtime, next to each other.

    Raises:
        InputError: a spec matches nothing, an engine cannot be provisioned, no engine has a tier or runtime, or the
            Khronos tools are not installed.
    """
    from pytest_t2n.config.variants import variants_of
    from pytest_t2n.records.platform import this_platform
    from t2n_core.engine.khronos import why_no_khronos

    if settings.khronos and (problem := why_no_khronos()):
        raise InputError(f"--t2n-khronos: {problem}")
    by_label: dict[str, ResolvedEngine] = {}
    for spec in settings.tract:
        try:
            resolved = load_resolver()(
                spec,
                offline=settings.offline,
                cache_dir=settings.cache_dir,
                progress=progress,
                fetch=not settings.only_collects,
                allow_unlisted=settings.allow_unlisted or None,
            )
        except T2NError as exc:
            raise InputError(f"--t2n-tract={spec}: {exc}") from None
        for engine in resolved:
            by_label.setdefault(engine.label, engine)
    releases = sorted(
        by_label.values(), key=lambda engine: (engine.kind != "wheel", version_of(engine.version), engine.label)
    )
    variants = variants_of(releases, settings.cpu, settings.runtime, progress)
    if settings.paths:
        variants = _on_paths(variants, settings.paths)
    here = this_platform().key
    engines = [SelectedEngine("tract", engine.version, engine.label, engine.to_dict(), here) for engine in variants]
    if settings.khronos:
        engines.append(SelectedEngine("khronos", KHRONOS_VERSION, KHRONOS_VERSION, platform=here))
    return engines


def _on_paths(engines: Sequence[ResolvedEngine], paths: str) -> list[ResolvedEngine]:
    """Return engines that check only on these paths. Raises InputError for a release without any of them."""
    from t2n_core.engine.paths import paths_of  # needs numpy

    chosen = [replace(engine, paths=paths) for engine in engines]
    if lacking := [engine.label for engine in chosen if not paths_of(engine)]:
        raise InputError(f"--t2n-paths={paths}: tract {', '.join(lacking)} has none of these paths")
    return chosen


def parse_versions(versions: str | Iterable[str]) -> tuple[SpecItem, ...]:
    """Return the items of a marker's `versions`, one text or a list, in the grammar of `--t2n-tract` without paths.

    Raises:
        EngineResolveError: an item is not in the grammar, or there are none.
    """
    from t2n_core.engine.provision.versions import parse_spec

    items = parse_spec(versions if isinstance(versions, str) else ",".join(versions))
    if any(item.kind == "path" for item in items):
        raise EngineResolveError("a binary is an engine of the session: --t2n-tract=path:/to/tract")
    return items


def engines_for(
    engines: Sequence[SelectedEngine], targets: Iterable[str], versions: Sequence[SpecItem] | None = None
) -> list[SelectedEngine]:
    """Return the session's engines for a test; `versions` narrows tract, and an item may match none of them."""
    target_names = set(targets)
    chosen = [engine for engine in engines if engine.target in target_names]
    if versions is None:
        return chosen
    from t2n_core.engine.provision.versions import choose_versions

    versions_of_tract = [version_of(engine.version) for engine in chosen if engine.target == "tract"]
    matching: set[Version] = set()
    for item in versions:
        with suppress(EngineResolveError):
            matching.update(choice.version for choice in choose_versions([item], versions_of_tract))
    return [engine for engine in chosen if engine.target != "tract" or version_of(engine.version) in matching]


def header_line(engines: Sequence[SelectedEngine], cache_dir: Path | None) -> str:
    """Return `t2n: tract 0.21.19 (0.21), 0.22.4 (0.22); cache /…`."""
    from pytest_t2n.config.variants import without_variant

    parts = []
    for target in dict.fromkeys(engine.qualified_target for engine in engines):
        versions = []
        for engine in engines:
            if engine.qualified_target == target:
                spec = engine.requested if engine.is_native else ""
                versions.append(f"{engine.label} ({spec})" if spec not in ("", engine.version) else engine.label)
        parts.append(f"{target} {', '.join(versions)}")
    parts += without_variant(engines)
    if cache_dir is not None and any(engine.target == "tract" for engine in engines):
        parts.append(f"cache {cache_dir}")
    return f"t2n: {'; '.join(parts)}"


def cache_folder(settings: Settings) -> Path:
    """Return the folder where the engines of this session are kept."""
    if settings.cache_dir is not None:
        return settings.cache_dir
    from t2n_core.engine.provision.store import default_cache_dir

    return default_cache_dir()


def version_of(text: str) -> Version:
    """Return the version of an engine; 0 for a binary without one, which sorts first and is in no range."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")


def runner_of(engine: SelectedEngine) -> Engine:
    """Return a runner of archives in an engine; it starts nothing before its first job."""
    if engine.target == ONNXRUNTIME:
        from t2n_core.exporters.runtime import OnnxRuntimeEngine

        return OnnxRuntimeEngine()
    if engine.resolved is None:
        from t2n_core.engine.khronos.engine import KhronosEngine

        return KhronosEngine.shared()
    from t2n_core.engine import ResolvedEngine, engine_for

    return engine_for(ResolvedEngine.from_dict(engine.resolved))
