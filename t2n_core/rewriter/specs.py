"""Rewriters, each with its subject, its replacement and its target, and the decorators that create them.

    @rewriter.function(torch.matmul, target="tract", versions="<0.22")
    def matmul__tract(ctx: RewriteContext, input, other): ...

A decorator returns a value and registers nothing: an export uses only the rewriters that are passed to it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, get_args

from packaging.specifiers import InvalidSpecifier
from packaging.version import Version

from t2n_core.errors import RewriteError, RewriteWarning
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.spec import TargetName
from t2n_core.text import suggestion

Decorator: TypeAlias = Callable[[Any], "Rewriter"]


class Level(StrEnum):
    """The level at which a rewriter acts."""

    FUNCTION = "function"
    MODULE = "module"
    SYMBOLIC = "symbolic"


@dataclass(frozen=True, slots=True, eq=False)
class Rewriter:
    """One replacement, created by `function`, `method`, `module`, `symbolic` or `switch_off`."""

    level: Level
    subject: Any
    """The subject that is replaced: a callable, a class, an operator, or the import path of one of them."""
    replacement: Any
    """The function, module or rule that takes its place; None for a rule that is switched off."""
    name: str = ""
    """The method's name, if the subject is its class."""
    target: str | None = None
    versions: Releases | None = None
    spellings: tuple[Any, ...] = ()
    where: Callable[[Any], bool] | None = None
    outputs: Callable[..., Any] | None = None
    builtin: bool = False
    registered: str = ""
    """The file that registered it; empty if it is passed to an export."""
    place: str = field(default="")
    """`file:line` of the replacement."""

    def fits(self, target: Any) -> bool:
        """Return whether the rewriter is for this target; None means no particular target."""
        if self.target is None:
            return True
        if target is None or target.name != self.target:
            return False
        return self.versions is None or Version(target.version) in self.versions

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """Return the rank among rewriters of one subject; the highest one applies.

        A user's rewriter comes before a built-in one, one passed to the export before a registered one, one for a
        target before one for all, and one for some versions before one for any.
        """
        return (not self.builtin, not self.registered, self.target is not None, self.versions is not None)

    @property
    def subject_name(self) -> str:
        stem = self.subject if isinstance(self.subject, str) else _name_of(self.subject)
        return f"{stem}.{self.name}" if self.name else stem

    def __str__(self) -> str:
        word = "switched off" if self.replacement is None else _name_of(self.replacement)
        only = f" for {self.target}{self.versions or ''}" if self.target else ""
        return f"{self.subject_name} -> {word}{only} ({self.place})"


def function(
    subject: Any, *, target: str | None = None, versions: str | None = None, spellings: Iterable[Any] = ()
) -> Decorator:
    """Replace a function: `def replacement(ctx, *args of the original) -> its result`.

    Args:
        subject: a function of torch's API (all spellings of it: `torch.matmul`, `@`, `.matmul`), an operator
            (`torch.ops.aten.gelu.default`, a `torch.library.custom_op`), a Python function or method, or the import
            path of one (`"transformers.models.bert.modeling_bert.BertModel.forward"`).
        target: `"tract"`, `"khronos"` or the name of a user's own; all if None.
        versions: of the target, as a PEP 440 specifier: `">=0.21,<0.23"`.
        spellings: other callables that are the same function with the same arguments.

    Raises:
        RewriteError: a subject that is none of these, or versions that cannot be read.
    """
    return _decorator(Level.FUNCTION, subject, target, versions, spellings=tuple(spellings))


def method(owner: type | str, name: str, *, target: str | None = None, versions: str | None = None) -> Decorator:
    """Replace a method of a class and of what inherits it from there: `def replacement(ctx, self, …)`.

    An inherited method is replaced for `owner` only, not for the class that it comes from.
    """
    return _decorator(Level.FUNCTION, owner, target, versions, name=name)


def module(
    subject: type | str,
    *,
    target: str | None = None,
    versions: str | None = None,
    where: Callable[[Any], bool] | None = None,
) -> Decorator:
    """Replace all modules of a class by one module, or each by the result of a factory `(ctx, module) -> Module`.

    A subclass is replaced too, unless it has its own forward or a nearer class is registered. `where` selects
    instances.
    """
    return _decorator(Level.MODULE, subject, target, versions, where=where)


def symbolic(
    subject: Any, *, target: str | None = None, versions: str | None = None, outputs: Callable[..., Any] | None = None
) -> Decorator:
    """Set the rule of an operator: `def rule(g, *arguments by the names of the schema) -> value or values`.

    Args:
        subject: `"aten::gelu"` (all overloads), `"aten::sum.dim_IntList"`, an operator, a `torch.library.custom_op`; or
            a subclass of `torch.autograd.Function`, which then is one node whose rule gets the arguments of `apply`.
            The same applies to its subclasses without their own rule.
        outputs: for a Function whose forward cannot run on fake tensors: returns tensors of the right shapes and
            dtypes.
    """
    return _decorator(Level.SYMBOLIC, subject, target, versions, outputs=outputs)


def switch_off(subject: Any, *, target: str | None = None, versions: str | None = None) -> Rewriter:
    """Disable the built-in rule of an operator: PyTorch then decomposes it, or it is refused."""
    return make(Level.SYMBOLIC, subject, target, versions, None, caller())


def _decorator(level: Level, subject: Any, target: str | None, versions: str | None, **more: Any) -> Decorator:
    where = caller()
    _checked_versions(target, versions, where)

    def decorate(replacement: Any) -> Rewriter:
        if isinstance(replacement, Rewriter):
            raise RewriteError(
                f"{where}: a rewriter has one subject", hint="decorate a second function, or call the decorator on it"
            )
        if not callable(replacement):
            raise RewriteError(f"{where}: {replacement!r} cannot replace {_name_of(subject)}: it is not callable")
        return make(level, subject, target, versions, replacement, place_of(replacement) or where, **more)

    return decorate


def make(
    level: Level, subject: Any, target: str | None, versions: str | None, replacement: Any, location: str, **more: Any
) -> Rewriter:
    """Return a rewriter. Raises RewriteError for a subject that is neither a callable nor the import path of one."""
    if not (isinstance(subject, str) or callable(subject)):
        raise RewriteError(f"{location}: {subject!r} is neither a callable nor the import path of one")
    names = get_args(TargetName)  # a user's own target may have any name that is not like these
    if target is not None and target not in names and (near := suggestion(target, names, "")):
        warnings.warn(RewriteWarning(f"{location}: for the target `{target}`; {near}"), stacklevel=3)
    return Rewriter(
        level,
        subject,
        replacement,
        target=target,
        versions=_checked_versions(target, versions, location),
        place=location,
        **more,
    )


def _checked_versions(target: str | None, versions: str | None, location: str) -> Releases | None:
    if versions is None:
        return None
    if target is None:
        raise RewriteError(f"{location}: versions={versions!r} without a target")
    try:
        return Releases.parse(versions)
    except InvalidSpecifier as wrong:
        raise RewriteError(f"{location}: versions={versions!r} is not a range", hint="write '>=0.21,<0.23'") from wrong


def place_of(replacement: Any) -> str:
    """Return the `file:line` of a function; empty for anything else."""
    code = getattr(inspect.unwrap(replacement) if inspect.isfunction(replacement) else replacement, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def caller(*files: str) -> str:
    """Return the `file:line` where the user wrote the decorator; frames of these modules are left out too."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") in (__name__, *files):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def _name_of(thing: Any) -> str:
    if isinstance(thing, str):
        return thing
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    if name is None or type(thing).__module__ == "torch._ops":  # an operator prints its own name
        return str(thing) if type(thing).__module__.startswith("torch.") else type(thing).__qualname__
    if inspect.isbuiltin(thing):
        return f"torch.{thing.__name__}" if name.startswith("_VariableFunctions") else str(thing.__name__)
    home = getattr(thing, "__module__", None)
    return f"{home}.{name}" if home else str(name)
