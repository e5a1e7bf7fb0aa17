"""Inference engines: which versions exist, where their files are, and how to run an archive in one of them.

    engines = resolve_engines("0.21,0.23")          # asks the index once, downloads what is not in the cache
    reply = engine_for(engines[0]).run(archive, [[array]], timeout=60.0)

Everything loads on first use: importing this package costs nothing and never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.engine.pool import close_all, engine_for
    from t2n_core.engine.provision.resolution import resolve_engines
    from t2n_core.engine.provision.resolved import ResolvedEngine

_HOMES = {
    "ResolvedEngine": "t2n_core.engine.provision.resolved",
    "close_all": "t2n_core.engine.pool",
    "engine_for": "t2n_core.engine.pool",
    "resolve_engines": "t2n_core.engine.provision.resolution",
}

__all__ = ["ResolvedEngine", "close_all", "engine_for", "resolve_engines"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
