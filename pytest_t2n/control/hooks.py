"""Hooks of the user and of other plugins: an exception fails the session, which keeps all of its results."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.records.cell import SelectedEngine
from t2n_core.text import text_of

_RAISED = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""All exceptions of a hook except Ctrl-C: pytest's are not subclasses of Exception."""
_ENDS_SESSION = (pytest.exit.Exception, pytest.UsageError)


class HookCalls:
    """Calls hooks, and collects their exceptions."""

    def __init__(self) -> None:
        self._raised: Counter[str] = Counter()

    def call(self, hook: Callable[..., Any], **arguments: Any) -> Any:
        """Return the result of the hook; None if it raises. `pytest.exit` still ends the session."""
        try:
            return hook(**arguments)
        except pytest.exit.Exception:
            raise
        except _RAISED as exc:
            self._raised[_describe(hook, exc)] += 1
            return None

    def problems(self) -> list[str]:
        """Return the exceptions, each once."""
        return [f"{text}, {times} times" if times > 1 else text for text, times in self._raised.items()]


def change_engines(config: pytest.Config, engines: list[SelectedEngine]) -> None:
    """Let hooks change the engines of a session.

    Raises:
        pytest.UsageError: a hook raises, or the list then has an item that is not an engine, or two of one name.
    """
    hook = config.hook.pytest_t2n_engines
    try:
        hook(config=config, engines=engines)
    except _ENDS_SESSION:
        raise
    except _RAISED as exc:
        raise pytest.UsageError(_describe(hook, exc)) from exc
    for engine in engines:
        if problem := _problem_of(engine):
            raise pytest.UsageError(f"pytest_t2n_engines: {engine!r} {problem}")
    names = Counter(engine.id for engine in engines)
    for name, times in names.items():
        if times > 1:
            raise pytest.UsageError(f"pytest_t2n_engines: {times} engines are called {name}; give each a label")


def _problem_of(engine: object) -> str:
    """Return why an object is not an engine that tests can run on, or ''."""
    from t2n_core.engine import ResolvedEngine

    if not isinstance(engine, SelectedEngine):
        return "is not a SelectedEngine"
    if engine.target not in ("tract", "khronos"):
        return f"has the target {engine.target!r}, which is neither tract nor khronos"
    if engine.target == "khronos":
        return ""
    try:
        ResolvedEngine.from_dict(engine.resolved or {})
    except (KeyError, ValueError, TypeError) as exc:
        return f"has no files to run: `resolved` is not what ResolvedEngine.to_dict returns ({text_of(exc)})"
    return ""


def _describe(hook: Callable[..., Any], exc: BaseException) -> str:
    """Return a line with the hook, its exception and the source line."""
    last = traceback.extract_tb(exc.__traceback__)[-1]
    name = getattr(hook, "name", "a hook")
    return f"{name} raised {type(exc).__name__}: {text_of(exc)} ({Path(last.filename).name}:{last.lineno})"
