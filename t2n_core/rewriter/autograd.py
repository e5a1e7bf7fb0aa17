"""Autograd functions that stay one node with a user's rule.

`apply` of the class is replaced while a model is captured. A reference that was taken before, `cube = Cube.apply`, is
not affected; it ends in the class's `forward`, which is replaced too.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from t2n_core.errors import RewriteError
from t2n_core.rewriter.context import CURRENT, get_context, running
from t2n_core.rewriter.patches import intercept
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.custom_ops.module_calls import MODULE_CALL, WholeCall, write_node


@dataclass(frozen=True, slots=True, eq=False)
class FunctionNode:
    """One call of an autograd function that stays one node."""

    cls: type[torch.autograd.Function]
    rewriter: Rewriter
    kind = MODULE_CALL

    @property
    def function(self) -> Callable[..., Any]:
        return self.rewriter.replacement  # type: ignore[no-any-return]

    def as_one_node(self, *args: Any, **kwargs: Any) -> Any:
        return write_node(
            self, [], self._outputs, args, kwargs, f"`outputs=` of the rule for {self.rewriter.subject_name}"
        )

    def _outputs(self, *args: Any, **kwargs: Any) -> Any:
        if self.rewriter.outputs is not None:
            return self.rewriter.outputs(*args, **kwargs)
        with torch.no_grad():
            return self.compute(*args, **kwargs)

    def compute(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function itself computes."""
        token = CURRENT.set(None)
        try:
            return _apply_of(self.cls)(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    def write(self, g: Any, call: WholeCall, inputs: list[Any], params: list[Any], given: Any) -> Any:
        """Call the rule with the arguments of `apply`, values instead of tensors."""
        args, kwargs = call.arguments_with(inputs)
        symbolic = getattr(self.cls, "symbolic", None)
        original = symbolic if callable(symbolic) else partial(_refuse_symbolic, self.cls)
        try:
            with running(replace(get_context(), original=original)):
                return self.rewriter.replacement(g, *args, **kwargs)
        except TypeError as wrong:
            raise g.fail(f"the rule for {self.rewriter.subject_name} ({self.rewriter.place}): {wrong}") from wrong


def _refuse_symbolic(cls: type, *args: Any, **kwargs: Any) -> Any:
    raise RewriteError(f"{cls.__qualname__} has no static method `symbolic` that `origin_func` could call")


@contextmanager
def whole_functions(functions: Mapping[type, Rewriter]) -> Iterator[None]:
    """While active, calls of these autograd functions and of their subclasses are one node each."""
    forwards = {id(f): f for cls in functions if isinstance(f := vars_of(cls, "forward"), types.FunctionType)}
    with ExitStack() as stack:
        stack.enter_context(intercept(forwards.values(), _forward))
        for cls in functions:
            if vars_of(cls, "apply") is vars(torch.autograd.Function)["apply"]:  # otherwise it is the user's own
                stack.enter_context(_replace_apply(cls))
        yield


def vars_of(cls: type, name: str) -> Any:
    """Return a member of a class from its namespace, without binding; for a static method its function."""
    member = next(vars(base)[name] for base in cls.__mro__ if name in vars(base))
    return member.__func__ if isinstance(member, staticmethod) else member


@contextmanager
def _replace_apply(cls: type) -> Iterator[None]:
    @classmethod  # type: ignore[misc]
    def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
        rewriter = _rewriter_of(kind)
        if rewriter is None:
            return _apply_of(kind)(*args, **kwargs)
        return _node(kind, rewriter, *args, **kwargs)

    type.__setattr__(cls, "apply", apply)
    try:
        yield
    finally:
        type.__delattr__(cls, "apply")


def _forward(subject: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dispatch a call of `forward` from a reference to `apply`."""
    session = CURRENT.get()
    functions = session.selection.functions if session is not None else {}
    owners = [cls for cls in functions if vars_of(cls, "forward") is subject]
    if not owners:
        return original(*args, **kwargs)
    has_context = vars_of(owners[0], "setup_context") is vars_of(torch.autograd.Function, "setup_context")
    cls = getattr(type(args[0]), "_forward_cls", owners[0]) if has_context else owners[0]
    rewriter = _rewriter_of(cls)
    if rewriter is None:
        return original(*args, **kwargs)
    return _node(cls, rewriter, *args[int(has_context) :], **kwargs)


def _node(cls: Any, rewriter: Rewriter, *args: Any, **kwargs: Any) -> Any:
    session = CURRENT.get()
    assert session is not None
    session.hits[rewriter] += 1
    return FunctionNode(cls, rewriter).as_one_node(*args, **kwargs)


def _rewriter_of(cls: type) -> Rewriter | None:
    """Return the rewriter of the nearest class of a function; None outside a session, or without one."""
    session = CURRENT.get()
    if session is None:
        return None
    return next(
        (session.selection.functions[base] for base in cls.__mro__ if base in session.selection.functions), None
    )


def _apply_of(cls: type) -> Callable[..., Any]:
    """Return PyTorch's own `apply` of a class."""
    bound: Callable[..., Any] = vars(torch.autograd.Function)["apply"].__get__(None, cls)
    return bound
