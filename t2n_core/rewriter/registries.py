"""Registries of rewriters, with the spellings of mmdeploy: their decorators register, and return what they decorate.

    @FUNCTION_REWRITER.register_rewriter(func_name="torch.Tensor.repeat", backend="tract")
    def repeat_static(input, *size):
        ctx = FUNCTION_REWRITER.get_context()
        return ctx.origin_func(input, *size)

A registration is a `Rewriter`, created as by the decorators of `specs`. A first parameter with the name `ctx` gets the
context; without one, `get_context()` returns it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

import torch

from t2n_core.errors import RewriteError
from t2n_core.op.registry import schemas_of
from t2n_core.rewriter.context import RewriteContext, get_context
from t2n_core.rewriter.parsing import OnnxEmitter, check_descriptors, parse
from t2n_core.rewriter.specs import Level, Rewriter, caller, make, place_of

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_DEFAULT = "default"
"""The name of no particular backend in mmdeploy."""


class RewriterRegistry:
    """Rewriters that all exports use, in the order of their registration.

    `with registry:` removes at its end what was registered, and restores what was removed, inside.
    """

    def __init__(self, rewriters: Iterable[Rewriter] = ()) -> None:
        self._rewriters = list(rewriters)
        self._outer: list[list[Rewriter]] = []

    def __iter__(self) -> Iterator[Rewriter]:
        return iter(self._rewriters)

    def __len__(self) -> int:
        return len(self._rewriters)

    def __enter__(self) -> Self:
        self._outer.append(list(self._rewriters))
        return self

    def __exit__(self, *error: object) -> None:
        self._rewriters = self._outer.pop()

    def copy(self) -> Self:
        """Return a registry with the same rewriters. Exports use the global ones only: pass `rewriters=[*copy]`."""
        return type(self)(self._rewriters)

    def clear(self) -> None:
        """Remove all rewriters."""
        self._rewriters.clear()

    def replace(self, rewriters: Iterable[Rewriter]) -> None:
        """Replace the present rewriters with these."""
        self._rewriters = list(rewriters)

    def get_context(self) -> RewriteContext:
        """Return the context of the rewrite that is running. Raises RewriteError outside of one."""
        return get_context()

    def _add(self, level: Level, subject: Any, backend: Any, replacement: Any, definition: Any, **more: Any) -> None:
        if not callable(definition):
            raise RewriteError(f"{caller(__name__)}: {definition!r} cannot be registered: it is not callable")
        target = None if backend in (None, _DEFAULT) else str(getattr(backend, "value", backend))
        where = caller(__name__)
        location = place_of(definition) or where
        file = where.rpartition(":")[0]
        new = make(level, subject, target, None, replacement, location, registered=file, **more)
        self._rewriters = [  # a module that is loaded again registers again
            r for r in self._rewriters if (r.place, r.subject_name, r.target) != (location, new.subject_name, target)
        ]
        self._rewriters.append(new)


class FunctionRewriterRegistry(RewriterRegistry):
    """The registry of functions and methods."""

    def register_rewriter(
        self, func_name: Any, backend: str | None = None, **others: Any
    ) -> Callable[[Decorated], Decorated]:
        """Register a replacement for a function, a method, or an operator, as `rewriter.function` does.

        Args:
            func_name: import path of the function, or the function.
            backend: `"tract"`, `"khronos"` or the name of a user's own target; all if not given.
            others: refused.

        Raises:
            RewriteError: for an argument that does not exist here, such as `ir` or `extra_checkers` of mmdeploy.
        """
        _refuse(others, "register_rewriter(func_name=…, backend=…)")

        def register(function: Decorated) -> Decorated:
            self._add(Level.FUNCTION, func_name, backend, _with_context(function), function)
            return function

        return register


class ModuleRewriterRegistry(RewriterRegistry):
    """The registry of modules."""

    def register_rewrite_module(
        self, module_type: Any, backend: str | None = None, **kwargs: Any
    ) -> Callable[[Decorated], Decorated]:
        """Register a replacement for a class of modules, as `rewriter.module` does.

        It is built as `cls(module, cfg, **kwargs)` for each module of the model; `cfg` is the option `deploy_config`.

        Args:
            module_type: import path of the class of modules, or the class.
            backend: `"tract"`, `"khronos"` or the name of a user's own target; all if not given.
            kwargs: further arguments of the class.
        """

        def register(cls: Decorated) -> Decorated:
            def build(ctx: RewriteContext, module: torch.nn.Module) -> Any:
                try:
                    inspect.signature(cls).bind(module, ctx.cfg, **kwargs)
                except TypeError as wrong:
                    raise RewriteError(
                        f"{cls.__qualname__}: {wrong}", hint="its first two arguments are the module and the cfg"
                    ) from wrong
                return cls(module, ctx.cfg, **kwargs)

            build.__qualname__ = build.__name__ = getattr(cls, "__qualname__", str(cls))
            self._add(Level.MODULE, module_type, backend, build, cls)
            return cls

        return register


class SymbolicRewriterRegistry(RewriterRegistry):
    """The registry of rules of operators and of autograd functions."""

    def register_symbolic(
        self,
        func_name: Any,
        backend: str | None = None,
        is_pytorch: bool = False,
        arg_descriptors: Iterable[str] | None = None,
        *,
        outputs: Callable[..., Any] | None = None,
        **others: Any,
    ) -> Callable[[Decorated], Decorated]:
        """Register the rule of an operator or of an autograd function, as `rewriter.symbolic` does.

        The rule gets `g`, with `g.op("name", …, attribute_i=…)` beside the methods of `g`, and the arguments. Those of
        an operator may have other names than in its schema; they are then bound by position.

        Args:
            func_name: the bare name of a built-in of PyTorch, `squeeze`; `namespace::name`; the import path of an
                autograd function; or one of these objects.
            backend: `"tract"`, `"khronos"` or the name of a user's own target; all if not given.
            is_pytorch: whether `func_name` is the bare name of a built-in.
            arg_descriptors: kinds of the arguments, as of `torch.onnx.symbolic_helper.parse_args`.
            outputs: as of `rewriter.symbolic`.
            others: refused.

        Raises:
            RewriteError: for an unknown descriptor or argument, and for a bare name without `is_pytorch=True`.
        """
        _refuse(others, "register_symbolic(func_name, backend=…, is_pytorch=…, arg_descriptors=…)")
        descriptors = check_descriptors(arg_descriptors)
        subject = func_name
        if isinstance(func_name, str) and "::" not in func_name:
            if is_pytorch:
                subject = f"aten::{func_name}"
            elif "." not in func_name:
                raise RewriteError(
                    f"{func_name!r} is not the path of an autograd function",
                    hint=f"for the built-in of PyTorch: register_symbolic({func_name!r}, is_pytorch=True)",
                )

        def register(rule: Decorated) -> Decorated:
            self._add(Level.SYMBOLIC, subject, backend, _as_rule(rule, subject, descriptors), rule, outputs=outputs)
            return rule

        return register


FUNCTION_REWRITER = FunctionRewriterRegistry()
MODULE_REWRITER = ModuleRewriterRegistry()
SYMBOLIC_REWRITER = SymbolicRewriterRegistry()
REGISTRIES: tuple[RewriterRegistry, ...] = (FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER)
"""The registries that exports use."""


def registered_rewriters() -> tuple[Rewriter, ...]:
    """Return the rewriters of all registries."""
    return tuple(rewriter for registry in REGISTRIES for rewriter in registry)


def _refuse(others: dict[str, Any], call: str) -> None:
    if others:
        raise RewriteError(f"there is no argument `{next(iter(others))}` of a registration", hint=f"write {call}")


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a built-in, such as torch.sigmoid
        return False
    return next(iter(parameters), "") == "ctx"


def _with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(function) or _takes_context(function):
        return function

    @functools.wraps(function)
    def without_context(ctx: RewriteContext, /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return without_context


def _as_rule(function: Callable[..., Any], subject: Any, descriptors: tuple[str, ...]) -> Callable[..., Any]:
    """Return a rule `(g, *arguments by the names of the schema)` that parses its arguments and passes a context."""
    if not callable(function):
        return function
    first = 1 if _takes_context(function) else 0
    parameters = list(inspect.signature(function).parameters.values())[first:]

    @functools.wraps(function)
    def rule(g: Any, /, *args: Any, **kwargs: Any) -> Any:
        positional = [*args, *(kwargs.pop(name) for name in names if name in kwargs)] if renamed else list(args)
        bound = inspect.Signature(parameters).bind(OnnxEmitter(g), *positional, **kwargs)
        for (name, value), descriptor in zip(list(bound.arguments.items())[1:], descriptors, strict=False):
            bound.arguments[name] = parse(g, name, value, descriptor)
        context = (get_context(),) if first else ()
        return function(*context, *bound.args, **bound.kwargs)

    names = _schema_names(subject, [p.name for p in parameters[1:]])
    renamed = names != [p.name for p in parameters[1:]]
    renames = dict(zip([p.name for p in parameters[1:]], names, strict=False))
    signature = [p.replace(name=renames.get(p.name, p.name)) for p in parameters]
    rule.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return rule


def _schema_names(subject: Any, names: list[str]) -> list[str]:
    """Return the names of the arguments in the schema of an operator; these names unless some are not in any."""
    if not (isinstance(subject, str) and "::" in subject):
        return names
    try:
        schemas = [[a.name for a in schema.arguments] for schema in schemas_of(subject)]
    except Exception:  # an unknown operator is refused by the export, where its name is resolved
        return names
    if set(names) <= {name for schema in schemas for name in schema}:
        return names
    long_enough = [schema for schema in schemas if len(schema) >= len(names)]
    return long_enough[0][: len(names)] if long_enough else names
