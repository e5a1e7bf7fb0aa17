"""The context that is passed to a rewrite, and the session of the export that this thread captures."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from t2n_core.errors import RewriteError
from t2n_core.inference_target.base import InferenceTarget
from t2n_core.rewriter.specs import Rewriter

CAPTURE_LOCK = threading.RLock()
"""Locked while a model is captured or run for reference: PyTorch's tracers change process-wide state themselves."""


class Target:
    """The target of an export, and what rewrites read of it. A capture is valid for all that give the same."""

    def __init__(self, target: InferenceTarget | None) -> None:
        self._target = target
        self.asked = False
        """True if a rewrite read the target itself, which no other target equals."""
        self.operators: dict[str, bool] = {}
        """Operators that rewrites asked for, and whether the target has them."""

    def get(self) -> InferenceTarget | None:
        self.asked = True
        return self._target

    def has(self, operator: str) -> bool:
        """Return whether the target has an operator; False without a target."""
        self.operators[operator] = self._target is not None and self._target.spec.has(operator)
        return self.operators[operator]

    def reads_alike(self, target: InferenceTarget | None) -> bool:
        """Return whether rewrites would read the same of another target."""
        other = Target(target)
        is_alike = all(other.has(name) == answer for name, answer in self.operators.items())
        return is_alike and (not self.asked or self._target is target)


@dataclass(frozen=True, slots=True)
class RewriteContext:
    """The first argument of the rewrite of a function or a module."""

    original: Callable[..., Any]
    """The replaced object: the function, taking `self` or `cls` explicitly if it is a method; the module; the rule."""
    path: str
    """Dotted path of the module that is running or replaced; empty for the root."""
    options: Mapping[str, Any]
    """Options of the export: input_names, output_names, dynamic_axes, …"""
    _target: Target = field(repr=False)

    @property
    def target(self) -> InferenceTarget | None:
        """Return the target, with its options as attributes; None if a model is captured without one."""
        return self._target.get()

    def has_operator(self, name: str) -> bool:
        """Return whether the target has an operator. Targets with the same answer share a capture."""
        return self._target.has(name)

    @property
    def cfg(self) -> Any:
        """Return the deployment config of the export, its option `deploy_config`."""
        return self.options.get("deploy_config")

    @property
    def origin_func(self) -> Callable[..., Any]:
        """Return `original`, under the name that it has in mmdeploy."""
        return self.original


RUNNING: ContextVar[RewriteContext | None] = ContextVar("t2n_running_rewrite", default=None)
"""The context of the rewrite that runs in this thread, the innermost one."""


@contextmanager
def running(context: RewriteContext) -> Iterator[RewriteContext]:
    """While active, `get_context` returns this context."""
    token = RUNNING.set(context)
    try:
        yield context
    finally:
        RUNNING.reset(token)


def get_context() -> RewriteContext:
    """Return the context of the rewrite that is running. Raises RewriteError outside of one."""
    context = RUNNING.get()
    if context is None:
        raise RewriteError(
            "get_context() is called while no rewrite is running", hint="call it in the body of a rewriter"
        )
    return context


@dataclass(slots=True, eq=False)
class Session:
    """One capture with its rewrites."""

    target: Target
    options: Mapping[str, Any]
    selection: Any = None
    """The active `Selection`; None in the session of an operator's rewrite."""
    hits: Counter[Rewriter] = field(default_factory=Counter)
    paths: list[str] = field(default_factory=list)
    """Paths of the modules that are running, innermost last."""
    busy: set[tuple[Rewriter, int]] = field(default_factory=set)
    """Rewrites that are running, with the object whose method they replace."""

    def context(self, original: Callable[..., Any], path: str | None = None) -> RewriteContext:
        if path is None:
            path = self.paths[-1] if self.paths else ""
        return RewriteContext(original, path, self.options, self.target)

    def call(
        self,
        rewriter: Rewriter,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        instance_id: int = 0,
    ) -> Any:
        """Call the rewrite instead of `original`. Inside it, the function's name means the original again.

        Calls from within the original are rewritten as usual, and so are recursive structures. `instance_id` is the
        `id` of a method's object: the same method of another object is rewritten inside as well.
        """
        key = (rewriter, instance_id)
        if key in self.busy:
            return original(*args, **kwargs)

        @wraps(original, assigned=("__name__", "__qualname__", "__doc__", "__module__"))
        def call_original(*args: Any, **kwargs: Any) -> Any:
            self.busy.discard(key)
            try:
                return original(*args, **kwargs)
            finally:
                self.busy.add(key)

        from_torch = (getattr(original, "__module__", None) or "torch").partition(".")[0] == "torch"
        context = self.context(original if from_torch else call_original)
        self.hits[rewriter] += 1
        self.busy.add(key)
        try:
            with running(context):
                return rewriter.replacement(context, *args, **kwargs)
        finally:
            self.busy.discard(key)


CURRENT: ContextVar[Session | None] = ContextVar("t2n_rewriting", default=None)
"""The session of this thread; the innermost export's if exports nest, and None in a new thread."""


@contextmanager
def without_rewrites() -> Iterator[None]:
    """While active, nothing is rewritten in this thread, and no other thread has replaced the model's modules."""
    with CAPTURE_LOCK:
        token = CURRENT.set(None)
        try:
            yield
        finally:
            CURRENT.reset(token)
