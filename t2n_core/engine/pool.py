"""One engine per process, version, tier and runtime.

It is started on first use, closed at exit, and never shared with a forked process.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from t2n_core.engine.provision.resolved import EngineKind, ResolvedEngine
from t2n_core.engine.tract.cli_backend import CliEngine
from t2n_core.engine.tract.engine import TractEngine

TractRunner = TractEngine | CliEngine
_Key = tuple[EngineKind, str, Path, str, str, str, str]

_lock = threading.Lock()
_engines: dict[_Key, TractRunner] = {}


def engine_for(resolved: ResolvedEngine) -> TractRunner:
    """Return this process's engine for `resolved`; it is started with its first job."""
    variant = (resolved.tier, resolved.runtime, resolved.paths)
    key = (resolved.kind, resolved.version, resolved.library, resolved.sha256, *variant)
    with _lock:
        if key not in _engines:
            _engines[key] = TractEngine(resolved) if resolved.kind == "wheel" else CliEngine(resolved)
        return _engines[key]


def close_all() -> None:
    """Close every engine of this process; `engine_for` returns new ones afterwards."""
    with _lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.close()


def _abandon_all() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have locked it
    for engine in _engines.values():
        if isinstance(engine, TractEngine):
            engine.abandon()
    _engines.clear()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
