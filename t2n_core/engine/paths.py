"""The paths from an archive to outputs that programs in production take.

Up to 0.22 a program optimises the loaded model, and Rust programs declutter it before: both take other rewrites, and
fail on other graphs. From 0.23 on a model is decluttered when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from packaging.version import Version

from t2n_core.engine.protocol import Array, EngineReply, KeptStates
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.errors import InputError
from t2n_core.text import suggestion

_DECLUTTERS_ON_LOAD: Final = Version("0.23")
_FIXES_ALL_SYMBOLS: Final = Version("0.21.8")


class EnginePath(StrEnum):
    """A path through the engine, by the name that options and records use."""

    DECLUTTER = "declutter"
    """Declutter, then optimise: Rust's `into_optimized`, the command line's `-O`; all that 0.23 and later have."""
    OPTIMISE_ONLY = "optimise-only"
    """Optimise without declutter: `into_optimized` of the Python wheels and the C interface, up to 0.22."""
    FIXED_SYMBOLS = "fixed-symbols"
    """Give all symbols a value, then declutter and optimise: `concretize_dims` in Rust, `set_symbols`."""

    @property
    def declutters(self) -> bool:
        """Return whether the model is decluttered before it is optimised."""
        return self is not EnginePath.OPTIMISE_ONLY


def paths_of(engine: ResolvedEngine) -> tuple[EnginePath, ...]:
    """Return the paths on which archives are checked in an engine, the main one first.

    These are the selected paths that the release has; a command line always declutters.
    """
    if engine.kind == "cli":
        return tuple(path for path in parse_paths(engine.paths) if path.declutters)
    return paths_of_release(engine.version, engine.paths)


def paths_of_release(version: str, selected: str = "") -> tuple[EnginePath, ...]:
    """Return the paths of a release from a wheel: all, or a comma-separated selection."""
    declutters = Version(version) >= _DECLUTTERS_ON_LOAD
    return tuple(path for path in parse_paths(selected) if path.declutters or not declutters)


def is_required(path: EnginePath, version: str) -> bool:
    """Return whether a check fails where an archive is not right on this path.

    Before 0.21.8 several operators keep a symbol that is fixed, and up to 0.21.5 a constant NaN is refused, so that
    graphs with them fail however they are written: there the path of fixed symbols is only reported.
    """
    return path is not EnginePath.FIXED_SYMBOLS or Version(version) >= _FIXES_ALL_SYMBOLS


def parse_paths(text: str) -> tuple[EnginePath, ...]:
    """Return the paths that a comma list names, all of them for an empty one. Raises InputError for another name."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in list(EnginePath):
            raise InputError(f"{name!r} is not a path of the engine", hint=suggestion(name, map(str, EnginePath)))
    return tuple(path for path in EnginePath if not names or path in names)


@dataclass(frozen=True, slots=True)
class PathRun:
    """A further path of a job: the indices of the batches that run on it, and the sizes that are fixed before."""

    path: EnginePath
    batches: Sequence[int]
    symbols: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for the worker."""
        return {"declutter": self.path.declutters, "batches": list(self.batches), "symbols": dict(self.symbols)}


@dataclass(frozen=True, slots=True)
class OnPath:
    """An engine that takes one of its paths; implements `Engine`."""

    engine: Any
    path: EnginePath
    symbols: Mapping[str, int] = field(default_factory=dict)
    """The sizes that are fixed before the model is optimised."""
    kept_states: KeptStates | None = None
    """None for a path on which calls in used States are not compared."""

    @property
    def name(self) -> str:
        return str(self.engine.name)

    @property
    def version(self) -> str:
        return str(self.engine.version)

    @property
    def runs_stages(self) -> bool:
        """Return whether a graph can run before the optimiser has changed it."""
        return bool(getattr(self.engine, "runs_stages", False))

    def run(
        self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0, **options: Any
    ) -> EngineReply:
        """Run as the engine does, on this path."""
        reply: EngineReply = self.engine.run(
            archive, batches, timeout=timeout, path=self.path, symbols=self.symbols, **options
        )
        return reply

    def close(self) -> None:
        """Do nothing: the caller owns the engine."""


def on_path(engine: Any, path: str, sizes: Sequence[Mapping[str, int]] = ()) -> Any:
    """Return the engine on the path of an outcome, whose failed sizes are the fixed ones; itself for no path."""
    if not path:
        return engine
    fixed = EnginePath(path) is EnginePath.FIXED_SYMBOLS
    return OnPath(engine, EnginePath(path), sizes[0] if fixed and sizes else {})
