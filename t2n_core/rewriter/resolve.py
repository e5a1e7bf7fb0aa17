"""Resolution of the subjects that users name to the sites to intercept: callables, classes and operators."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import types
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from t2n_core.errors import RegistryError, RewriteError
from t2n_core.op.registry import schemas_of
from t2n_core.rewriter.specs import Level, Rewriter
from t2n_core.rewriter.torch_calls import is_torch_function
from t2n_core.text import suggestion
from t2n_core.torch_graph.compat.private import CustomOpDef, OpOverload, OpOverloadPacket, _dispatch_get_all_op_names


@dataclass(frozen=True, slots=True)
class PythonSite:
    """A Python function, or a callable that is replaced by name; only for objects of one class if `owner` is set."""

    function: Any
    owner: type | None = None


@dataclass(frozen=True, slots=True)
class TorchSite:
    """A function of torch's API that is written in C."""

    function: Any


@dataclass(frozen=True, slots=True)
class OperatorSite:
    """`aten::gelu`, or `aten::gelu.out` for one overload."""

    key: str


@dataclass(frozen=True, slots=True)
class ClassSite:
    """A class of modules, or of autograd functions."""

    cls: type


Site = PythonSite | TorchSite | OperatorSite | ClassSite


class Absent(Exception):  # noqa: N818  not an error
    """Raised if the subject belongs to a package that is not installed, so that the model cannot use it."""


def resolve(rewriter: Rewriter) -> Site:
    """Return the site where a rewriter acts. Raises Absent, and RewriteError for a name that does not exist."""
    subject = rewriter.subject
    if isinstance(subject, str):
        if "::" in subject:
            return _operator(rewriter, subject)
        subject, name = _import(rewriter, subject)
        if rewriter.level is Level.FUNCTION and name:
            return _member(rewriter, subject, name)
    if rewriter.name:
        return _member(rewriter, subject, rewriter.name)
    if isinstance(subject, CustomOpDef):
        subject = subject._opoverload
    if isinstance(subject, OpOverload):
        return OperatorSite(f"{subject._schema.name}.{subject._schema.overload_name}".rstrip("."))
    if isinstance(subject, OpOverloadPacket):
        return OperatorSite(subject._qualified_op_name)
    if rewriter.level is Level.FUNCTION:
        return _function(rewriter, subject)
    base = torch.nn.Module if rewriter.level is Level.MODULE else torch.autograd.Function
    if isinstance(subject, type) and issubclass(subject, base):
        return ClassSite(subject)
    raise RewriteError(f"{rewriter.place}: {rewriter.subject_name} is not a{_EXPECTED[rewriter.level]}")


_EXPECTED = {Level.MODULE: " class of modules", Level.SYMBOLIC: "n operator or a class of autograd functions"}


def _function(rewriter: Rewriter, subject: Any) -> Site:
    if inspect.ismethod(subject):
        if isinstance(subject.__self__, type):
            return _member(rewriter, subject.__self__, subject.__name__)
        raise RewriteError(
            f"{rewriter.place}: {rewriter.subject_name} is bound to one object",
            hint="name the class's method: rewriter.method(Class, 'name')",
        )
    if isinstance(subject, type):
        raise RewriteError(
            f"{rewriter.place}: {rewriter.subject_name} is a class",
            hint="use rewriter.module for a module's class, rewriter.method(Class, 'name') for a method",
        )
    if isinstance(subject, types.FunctionType):
        return PythonSite(subject)
    return TorchSite(subject) if is_torch_function(subject) else PythonSite(subject)


def _member(rewriter: Rewriter, owner: Any, name: str) -> Site:
    """Return the site of a method, through its descriptor; it keeps `owner` only for a method of a base class."""
    if not isinstance(owner, type):
        raise RewriteError(f"{rewriter.place}: {owner!r} is not a class, so it has no method {name}")
    home = next((base for base in owner.__mro__ if name in vars(base)), None)
    if home is None and rewriter.builtin:
        raise Absent(f"{owner.__qualname__} has no {name}")
    if home is None:
        raise RewriteError(f"{rewriter.place}: {owner.__qualname__} has no method {name!r}{_near(name, dir(owner))}")
    member = vars(home)[name]
    if isinstance(member, staticmethod) and home is not owner:
        raise RewriteError(
            f"{rewriter.place}: the static method {name} of {owner.__qualname__} is that of {home.__qualname__}",
            hint=f"name it as {home.__qualname__}.{name}; a call does not show through which class it was made",
        )
    function: Any = member
    if isinstance(member, staticmethod | classmethod):
        function = member.__func__
    elif isinstance(member, property):
        function = member.fget
    elif isinstance(member, cached_property):
        function = member.func
    if isinstance(function, types.FunctionType):
        return PythonSite(function, None if home is owner else owner)
    if is_torch_function(function):
        return TorchSite(function)
    raise RewriteError(f"{rewriter.place}: {owner.__qualname__}.{name} is not written in Python")


def _import(rewriter: Rewriter, path: str) -> tuple[Any, str]:
    """Return the object of an import path; for a member of a class, the class and the member's name.

    A built-in rewriter's module is inspected only if the program has already loaded it: nothing is imported for it, and
    a version of the library that lacks the name is ignored.
    """
    module_name, _, rest_of_path = path.partition(":")
    parts = path.replace(":", ".").split(".")
    package = parts[0]
    if rewriter.builtin:
        if module_name not in sys.modules:
            raise Absent(f"{module_name} is not loaded")
        holder, rest = sys.modules[module_name], rest_of_path.split(".")
    else:
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            raise Absent(f"{package} is not installed")
        holder, rest = _longest_module(parts, rewriter)
    for index, part in enumerate(rest):
        if isinstance(holder, type) and index == len(rest) - 1:
            return holder, part
        if not hasattr(holder, part):
            words = ".".join(parts[: len(parts) - len(rest) + index]) or package
            if rewriter.builtin:
                raise Absent(f"{words} has no {part}: another version of {package}")
            raise RewriteError(f"{rewriter.place}: {words} has no {part!r}{_near(part, dir(holder))}")
        holder = getattr(holder, part)
    return holder, ""


def _longest_module(parts: list[str], rewriter: Rewriter) -> tuple[Any, list[str]]:
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        try:
            if name in sys.modules or importlib.util.find_spec(name) is not None:
                return importlib.import_module(name), parts[count:]
        except ModuleNotFoundError:  # a parent that is not a package: the rest are attributes
            continue
        except ImportError as cause:
            raise Absent(f"{name} cannot be imported: {cause}") from cause
    raise RewriteError(f"{rewriter.place}: nothing of {'.'.join(parts)} can be imported")


def _operator(rewriter: Rewriter, key: str) -> OperatorSite:
    try:
        schemas_of(key)
    except RegistryError as wrong:
        namespace, _, name = key.partition("::")
        names = [n.partition("::")[2] for n in _dispatch_get_all_op_names() if n.startswith(f"{namespace}::")]
        if not names:
            raise Absent(f"no operator of {namespace}:: is loaded") from None
        raise RewriteError(f"{rewriter.place}: PyTorch has no operator {key}{_near(name, names)}") from wrong
    return OperatorSite(key.removesuffix(".default"))


def _near(word: str, names: list[str]) -> str:
    near = suggestion(word, names, "")
    return f"; {near}" if near else ""
