"""Kernel tiers and runtimes as an axis of a session: a release has an engine for each supported combination."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2n_core.engine.provision.resolved import CPU
from t2n_core.engine.tiers import NATIVE, first_with_tiers, has_tiers, parse_tiers
from t2n_core.errors import InputError

if TYPE_CHECKING:
    from pytest_t2n.records.cell import SelectedEngine
    from t2n_core.engine import ResolvedEngine


def variants_of(
    engines: Sequence[ResolvedEngine], cpu: str, runtime: str, progress: Callable[[str, str], None] | None = None
) -> list[ResolvedEngine]:
    """Return the engines of each release by tier, then by runtime; `cpu` and `runtime` are comma lists in order.

    A variant that a release does not support is left out if another release of the session supports it. `progress` is
    called with a version and what takes long for it.

    Raises:
        InputError: an unknown tier, a variant that no release supports, or a release without any engine.
    """
    try:
        tiers = parse_tiers(cpu) if cpu else (NATIVE,)
    except InputError as exc:
        raise InputError(f"--t2n-cpu: {exc}") from None
    runtimes = tuple(dict.fromkeys(name.strip() for name in runtime.split(","))) if runtime else (CPU,)
    if not engines:
        return []
    combinations = [("--t2n-cpu", tier, CPU) for tier in tiers] if CPU in runtimes else []
    combinations += [("--t2n-runtime", NATIVE, name) for name in runtimes if name != CPU]
    left: dict[str, str] = {}
    """The last reason why a release does not support a variant, by its label."""
    by_release: dict[str, list[ResolvedEngine]] = {engine.label: [] for engine in engines}
    for option, tier, name in combinations:
        problems = {}
        for engine in engines:
            variant = replace(engine, tier=tier, runtime=name)
            problems[engine.label] = problem = _why_not(variant, progress)
            if not problem:
                by_release[engine.label].append(variant)
        if all(problems.values()):
            raise InputError(f"{option}={tier if name == CPU else name}: {next(reversed(problems.values()))}")
        left |= problems
    for label, variants in by_release.items():
        if not variants:
            raise InputError(f"{left[label]}; add {NATIVE} to --t2n-cpu and {CPU} to --t2n-runtime, or leave it out")
    return [variant for variants in by_release.values() for variant in variants]


def without_variant(engines: Sequence[SelectedEngine]) -> list[str]:
    """Return lines for the header on tiers and runtimes that releases of the session lack: `no-fma not on 0.22.4`."""
    releases: dict[str, list[str]] = {}
    for engine in engines:
        if engine.target == "tract":
            base = engine.label.partition(" ")[0]
            releases.setdefault(base, []).append(engine.label.removeprefix(base).strip())
    everywhere = dict.fromkeys(word for words in releases.values() for word in words)
    lines = []
    for word in everywhere:
        missing = [base for base, words in releases.items() if word not in words]
        if word and missing:
            lines.append(f"{word} not on {', '.join(missing)}")
    return lines


def _why_not(engine: ResolvedEngine, progress: Callable[[str, str], None] | None) -> str:
    """Return why a release cannot be this variant on this machine; '' if it can."""
    if engine.tier != NATIVE and not has_tiers(engine.version):
        return f"tract {engine.version} has no kernel tiers, which came with {first_with_tiers()}"
    if engine.runtime == CPU or not engine.library.exists():  # a session that only collects may have no library
        return ""
    if engine.kind != "wheel":
        return f"{engine.label}: a binary named by path: runs on the processor here"
    from t2n_core.engine.tract.engine import TractEngine  # needs numpy

    if progress is not None:
        progress(engine.version, f"starting {engine.runtime}, whose kernels are compiled before its first graph")
    runner = TractEngine(engine)
    try:
        problem = runner.why_unusable()
    finally:
        runner.close()
    return f"tract {engine.version}: {problem}" if problem else ""
