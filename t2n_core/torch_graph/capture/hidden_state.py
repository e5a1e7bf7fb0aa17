"""Find state that a model keeps in Python: attributes that a call changes, and on which later calls depend.

An archive computes each call as the first one. Tables that a model computes once, and values that it stores for users
to look at, change no later call and are no state.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.own_run import are_equal, run_once
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.pytree.objects import parts_at_any_depth
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.reachable import is_foreign

_CHANGING: Final = frozenset(
    "add append appendleft clear discard extend insert pop popitem popleft remove setdefault update".split()
)
"""Methods of containers that change them."""
_OF_A_CALL: Final = 0.75
"""Factor of the floats of the second call, whose inputs differ from the first one's."""


def refusal_of_hidden_state(source: Source, inputs: ModelInputs) -> InputError | None:
    """Return the error of a model whose results depend on what an earlier call left in its Python objects.

    The model runs on the example only if its own code stores into attributes, and on other inputs, after that call and
    without it, only if the call has changed one of them. It stays as it is.
    """
    if source.is_script or source.program is not None:
        return None
    modules = [module for module in source.module.modules() if _stores_of(module)]
    if not modules:
        return None
    others = [tensor * _OF_A_CALL if tensor.is_floating_point() else tensor for tensor in inputs.tensors]
    try:
        with _restored(source.module, modules) as (before, buffers):
            run_once(source, inputs, inputs.tensors)
            changed = [key for key, snapshot in before.items() if not snapshot.holds()]
            if not changed:
                return None
            buffers.restore()  # the export itself refuses what a call writes into them
            after_another = run_once(source, inputs, others)
        with _restored(source.module, modules):
            alone = run_once(source, inputs, others)
    except Exception:
        return None  # the export itself reports a model that does not run
    if are_equal(after_another, alone):
        return None
    described = [f"`{name}` of {type(module).__name__} at {_stores_of(module)[name]}" for module, name in changed]
    places = "; ".join(dict.fromkeys(described))
    return InputError(
        f"{source.name} keeps state in Python, on which its next call depends: a call changes {places}",
        hint="an archive computes each call as the first one: take the state as an argument, return its next value, "
        "and declare it with state=; or set it anew in each call",
    )


def _stores_of(module: torch.nn.Module) -> Mapping[str, str]:
    kind: Any = type(module)
    return stores_of(kind)


@functools.cache
def stores_of(kind: Any) -> Mapping[str, str]:
    """Return the attributes that the code of a class stores into outside of `__init__`, each with its first place."""
    attributes: dict[str, str] = {}
    for base in kind.__mro__:
        if is_foreign(base.__module__):
            continue
        for name, function in vars(base).items():
            if isinstance(function, FunctionType) and name not in ("__init__", "__setstate__", "__setattr__"):
                for attribute, location in _stores(function):
                    attributes.setdefault(attribute, location)
    return attributes


def _stores(function: FunctionType) -> Iterator[tuple[str, str]]:
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # no source, or a lambda inside an expression
        return
    code = function.__code__
    if not code.co_argcount:
        return
    for node in ast.walk(tree):
        for target in _targets(node):
            attribute = _attribute(target, code.co_varnames[0])
            if attribute is not None:
                number = getattr(node, "lineno", 1)
                yield attribute, f"{code.co_filename}:{first + number - 1}: `{lines[number - 1].strip()}`"


def _targets(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions that a statement stores into, or whose container a call changes."""
    if isinstance(node, ast.Assign | ast.Delete):
        for target in node.targets:
            yield from _parts(target)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        yield node.target
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        yield node.func.value


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    """Yield the targets of an assignment to a tuple at any depth."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _parts(part)
    else:
        yield target


def _attribute(target: ast.AST, self_name: str) -> str | None:
    """Return the attribute of the object named `self_name` that an expression is part of; None for any other."""
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        inner = target.value
        if isinstance(target, ast.Attribute) and isinstance(inner, ast.Name) and inner.id == self_name:
            return target.attr
        target = inner
    return None


class _Elements:
    """The elements of tensors at one moment; weights are left out, since a copy of them takes much memory."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self._copies = [(part, part.detach().clone()) for part in parts if _is_plain(part)]

    def hold(self) -> bool:
        return all(torch.equal(tensor, elements) for tensor, elements in self._copies)

    def restore(self) -> None:
        for tensor, elements in self._copies:
            if not torch.equal(tensor, elements):
                tensor.copy_(elements)


class _Held:
    """The value of an attribute at one moment, with all its parts up to modules and the elements of its tensors."""

    def __init__(self, module: torch.nn.Module, name: str) -> None:
        self._module, self._name = module, name
        self._parts = self._now()
        self.elements = _Elements(self._parts)

    def _now(self) -> list[Any]:
        value = getattr(self._module, self._name, None)
        return [part for _, part in parts_at_any_depth(value, atoms=(torch.nn.Module,))]

    def holds(self) -> bool:
        """Return whether the attribute still has this value."""
        now = self._now()
        return len(now) == len(self._parts) and all(map(_is_same, now, self._parts)) and self.elements.hold()


@contextmanager
def _restored(
    model: torch.nn.Module, modules: list[torch.nn.Module]
) -> Iterator[tuple[Mapping[tuple[torch.nn.Module, str], _Held], _Elements]]:
    """Yield the values of the attributes that modules store into, and of buffers; leave the model as it was before."""
    snapshots = {(module, name): _Held(module, name) for module in modules for name in _stores_of(module)}
    buffers = [(module, dict(module._buffers)) for module in model.modules()]
    elements = _Elements(model.buffers())
    with torch.no_grad(), preserve_containers(model):
        try:
            yield snapshots, elements
        finally:
            for snapshot in snapshots.values():
                snapshot.elements.restore()
            for module, module_buffers in buffers:
                module._buffers.clear()
                module._buffers.update(module_buffers)
            elements.restore()


def _is_plain(part: Any) -> bool:
    is_buffer = isinstance(part, torch.Tensor) and not isinstance(part, torch.nn.Parameter)
    return is_buffer and not part.is_quantized and not part.is_meta and part.layout is torch.strided


def _is_same(now: Any, before: Any) -> bool:
    return now is before or (type(now) is type(before) and isinstance(now, bool | int | float | str) and now == before)
