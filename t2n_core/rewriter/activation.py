"""The patches that are active while one model is captured with rewriters, and always undone afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from t2n_core.rewriter.autograd import whole_functions
from t2n_core.rewriter.context import CAPTURE_LOCK, CURRENT, Session
from t2n_core.rewriter.modules import exchange_modules
from t2n_core.rewriter.patches import intercept
from t2n_core.rewriter.quantised.exchange import integer_weights
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter
from t2n_core.rewriter.torch_calls import RewrittenCalls


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A model with active rewriters."""

    model: torch.nn.Module
    """The model to capture: the user's own, or the replacement of the whole model."""
    modes: tuple[TorchFunctionMode, ...]
    """Modes to enter last, so that a user's rewrites come first."""
    running: Callable[[], AbstractContextManager[None]] = nullcontext
    """Returns the context that is active while the model runs."""
    labels: Mapping[Any, str] = field(default_factory=dict)
    """Place of a tensor that the user's model stores differently -> its name in the archive."""


@contextmanager
def rewriting(
    model: torch.nn.Module, selection: Selection, session: Session, *, builtin: bool = True
) -> Iterator[Rewritten]:
    """While active, rewrite calls of this thread; with `builtin` also calls of torch.ao models.

    The user's model contains its replacements meanwhile, hence the lock: captures and reference runs of other threads
    wait. An export inside an export uses only its own rewriters.
    """
    with CAPTURE_LOCK, ExitStack() as stack:
        model = stack.enter_context(exchange_modules(model, selection.modules, session))
        quantised = stack.enter_context(integer_weights(model)) if builtin else None
        session.selection = selection
        stack.callback(CURRENT.reset, CURRENT.set(session))
        stack.enter_context(whole_functions(selection.functions))
        if selection.subjects:
            stack.enter_context(intercept(selection.subjects.values(), _dispatch))
        if selection.subjects or selection.torch:
            stack.enter_context(_followed_paths(model, session))
        modes = (RewrittenCalls(session, selection.torch),) if selection.torch else ()
        yield (
            Rewritten(model, modes)
            if quantised is None
            else Rewritten(model, modes, quantised.running, quantised.labels)
        )


def _dispatch(subject: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    session = CURRENT.get()
    if session is None:
        return original(*args, **kwargs)
    rewriter = _nearest(session.selection.python.get(id(subject), {}), args)
    if rewriter is None:
        return original(*args, **kwargs)
    instance_id = id(args[0]) if args and isinstance(args[0], torch.nn.Module) else 0
    return session.call(rewriter, original, args, kwargs, instance_id)


def _nearest(owners: Mapping[Any, Rewriter], args: tuple[Any, ...]) -> Rewriter | None:
    """Return the rewriter of the nearest class of the object (or of the class itself), or the one for all classes."""
    if args:
        for base in (args[0] if isinstance(args[0], type) else type(args[0])).__mro__:
            if base in owners:
                return owners[base]
    return owners.get(None)


@contextmanager
def _followed_paths(model: torch.nn.Module, session: Session) -> Iterator[None]:
    names = {id(module): name for name, module in model.named_modules()}

    def enter(module: torch.nn.Module, args: Any) -> None:
        if CURRENT.get() is session:
            session.paths.append(names.get(id(module), session.paths[-1] if session.paths else ""))

    def leave(module: torch.nn.Module, args: Any, result: Any) -> None:
        if CURRENT.get() is session and session.paths:
            session.paths.pop()

    with ExitStack() as stack:
        stack.callback(register_module_forward_pre_hook(enter).remove)
        stack.callback(register_module_forward_hook(leave, always_call=True).remove)
        yield
