"""Replacement of modules while a model is captured, in every place of every parent, and their restoration."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

import torch

from t2n_core.errors import Origin, RewriteError, T2NError
from t2n_core.rewriter.context import Session, running
from t2n_core.rewriter.specs import Rewriter
from t2n_core.text import line_of_error
from t2n_core.torch_graph.capture.containers import refill
from t2n_core.torch_graph.compat.files import NOT_THE_USERS
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.graph.from_export import memory_key
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph

Undo = list[Callable[[], None]]


@contextmanager
def exchange_modules(
    model: torch.nn.Module, rewriters: Mapping[type, Rewriter], session: Session
) -> Iterator[torch.nn.Module]:
    """While active, the model contains its replacements; yield the model, or the replacement of the whole model.

    A module in several places is replaced once. Children are replaced before their parents, whose factory sees them.
    What a replacement changes on the model's own modules (attributes, children, flags, hooks) is undone as well.
    """
    undo: Undo = _attributes_of(model) if rewriters else []
    try:
        yield _exchange(model, rewriters, session, undo) if rewriters else model
    finally:
        for step in reversed(undo):
            step()


def inputs_of_replacement(source: Source, replacement: torch.nn.Module, inputs: ModelInputs) -> ModelInputs:
    """Return the example call by position, for a replacement whose parameters may have other names than the model's.

    The call stays unchanged if that would change the order of the archive's inputs.
    """
    if replacement is source.module:
        return inputs
    bound = source.signature().bind(*inputs.args, **inputs.kwargs)
    by_position = ModelInputs(bound.args, bound.kwargs, inputs.names)
    same_order = [id(t) for t in by_position.tensors] == [id(t) for t in inputs.tensors]
    return by_position if same_order else inputs


def restore_labels(
    graph: TorchModuleIRGraph, model: torch.nn.Module | None, others: Mapping[Any, str] = MappingProxyType({})
) -> None:
    """Give weights the names that they have in the user's model, if a replacement names them differently.

    `others` are names of tensors that the model stores differently, by their place.
    """
    names: dict[Any, str] = dict(others)
    for name, tensor in {} if model is None else model.state_dict().items():
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            names.setdefault(memory_key(tensor), name)
    for weight in graph.weights:
        if weight.data is not None and weight.label:
            name = names.get(memory_key(weight.data), weight.label)
            weight.name = weight.label = name


def _exchange(
    model: torch.nn.Module, rewriters: Mapping[type, Rewriter], session: Session, undo: Undo
) -> torch.nn.Module:
    named_modules = list(model.named_modules())
    places = _places(model)
    module_ids = {id(m) for _, m in named_modules}
    for path, module in reversed(named_modules):
        rewriter = _rewriter_for(module, rewriters)
        if rewriter is None:
            continue
        replacement = _replacement(rewriter, module, path, session)
        for part in replacement.modules():
            if id(part) not in module_ids:
                _set(vars(part), "training", module.training, undo)
        session.hits[rewriter] += 1
        for put in places.get(id(module), ()):
            put(replacement, undo)
        if module is model:
            return replacement
    return model


def _rewriter_for(module: torch.nn.Module, rewriters: Mapping[type, Rewriter]) -> Rewriter | None:
    for base in type(module).__mro__:
        rewriter = rewriters.get(base)
        if rewriter is not None:
            forward: Any = getattr(base, "forward", None)
            fits = type(module).forward is forward and (rewriter.where is None or rewriter.where(module))
            return rewriter if fits else None
    return None


def _replacement(rewriter: Rewriter, module: torch.nn.Module, path: str, session: Session) -> torch.nn.Module:
    if isinstance(rewriter.replacement, torch.nn.Module):
        return rewriter.replacement
    try:
        with running(session.context(module, path)) as context:
            replacement = rewriter.replacement(context, module)
    except T2NError:
        raise
    except Exception as cause:
        line = line_of_error(cause, NOT_THE_USERS) or rewriter.place
        raise RewriteError(
            f"the rewriter of {rewriter.subject_name} failed with {type(cause).__name__}: {cause}",
            origin=Origin(type(cause).__name__, path, line),
        ) from cause
    if not isinstance(replacement, torch.nn.Module):
        raise RewriteError(
            f"{rewriter.place}: the replacement of {rewriter.subject_name} is a "
            f"{type(replacement).__name__}, not a module",
            hint="a factory takes (ctx, module) and returns a torch.nn.Module",
        )
    return replacement


def _attributes_of(model: torch.nn.Module) -> Undo:
    """Return steps that restore the attributes of all modules, and their dicts, lists and sets in place."""
    undo: Undo = []
    for module in model.modules():
        for value in (vars(module), *vars(module).values()):
            if type(value) in (dict, OrderedDict, list, set):
                content = list(value.items()) if isinstance(value, dict) else list(value)
                undo.append(partial(refill, value, content))
    return undo


def _places(model: torch.nn.Module) -> dict[int, list[Callable[[Any, Undo], None]]]:
    """Return, by a module's `id`, a setter for each of its places: child, attribute, item of a container."""
    places: dict[int, list[Callable[[Any, Undo], None]]] = {}

    def note(value: Any, put: Callable[..., None], *where: Any) -> None:
        if isinstance(value, torch.nn.Module):
            places.setdefault(id(value), []).append(partial(put, *where))

    for parent in model.modules():
        for name, child in parent._modules.items():
            note(child, _set, parent._modules, name)
        for name, value in vars(parent).items():
            note(value, _set, vars(parent), name)
            if isinstance(value, tuple) and type(value) is tuple:
                for index, item in enumerate(value):
                    note(item, _set_item, vars(parent), name, index)
            elif isinstance(value, list) or (isinstance(value, dict) and not name.startswith("_")):
                for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
                    note(item, _set_inside, vars(parent), name, value, key)
    return places


def _set(holder: Any, key: Any, value: Any, undo: Undo) -> None:
    undo.append(partial(operator.setitem, holder, key, holder[key]))
    holder[key] = value


def _set_inside(attributes: Any, name: str, container: Any, key: Any, value: Any, undo: Undo) -> None:
    undo.append(partial(operator.setitem, attributes, name, container))  # torch.export leaves a copy of it there
    _set(container, key, value, undo)


def _set_item(holder: Any, key: Any, index: int, value: Any, undo: Undo) -> None:
    items = list(holder[key])
    items[index] = value
    _set(holder, key, tuple(items), undo)
