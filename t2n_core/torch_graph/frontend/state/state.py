"""State of a model: arguments that take the state after the previous call, and where a call leaves their next value.

The tensors of a state are inputs of the archive, their next values outputs. Each call of the model gets copies of the
example's objects with other tensors in them, so that no class has to be registered with PyTorch. A next value belongs
to the tensor of the same path: keys, attributes and indices, in whatever order they were set.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.frontend.pytree.objects import part_at, parts_at_any_depth
from t2n_core.torch_graph.frontend.pytree.structure import Path, leaves_with_path, map_leaves
from t2n_core.torch_graph.frontend.results import Results, is_output
from t2n_core.torch_graph.frontend.state.caches import exportable_cache
from t2n_core.torch_graph.frontend.state.names import state_name

StateOption: TypeAlias = str | Sequence[str] | Mapping[str, str | int | None]
"""The arguments that are state. A mapping also names the field or index of the result with the next value; None for a
result of the same name, or otherwise the object itself, which the call has changed."""

_NONE = object()
_IN_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class StateTensor:
    """One tensor of a state."""

    argument: str
    path: Path
    """The keys, attributes and indices that lead to it in the argument, from the outside in."""
    name: str
    """The common part of the names of its input and output."""
    example: torch.Tensor
    growing: tuple[int, ...] = ()
    """The axes that a call makes longer."""
    is_kept: bool = False
    """True if a call leaves it unchanged: it is then an input, and not an output."""

    @property
    def input(self) -> str:
        return f"in_{self.name}"

    @property
    def output(self) -> str:
        return f"out_{self.name}"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state arguments of a model."""

    examples: Mapping[str, Any]
    """Argument -> an object like the user's; each call gets a copy of it."""
    results: Mapping[str, str | int | None]
    tensors: tuple[StateTensor, ...] = ()

    @property
    def outputs(self) -> frozenset[str]:
        """Return the names of all next values."""
        return frozenset(tensor.output for tensor in self.tensors)

    def of(self, argument: str) -> list[StateTensor]:
        """Return the tensors of one argument, in order."""
        return [tensor for tensor in self.tensors if tensor.argument == argument]

    def flat_arguments(
        self, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with each state replaced by a dict of named tensors.

        Raises InputError for a state that differs from the example's in more than the values of its tensors.
        """
        before, after = split_at_state(signature, args, kwargs, self.examples)
        for argument in self.examples:
            parts = self._values(argument, _separate_tensors(exportable_cache(after[argument])), "the state")
            after[argument] = {tensor.input: part for tensor, part in zip(self.of(argument), parts, strict=True)}
        return before, after

    def run(self, call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Call a model with flat arguments; return its results by name, followed by the next values of the state.

        Parts of a result other than tensors are kept under their path.
        """
        objects = {name: self.object_of(name, list(kwargs[name].values())) for name in self.examples}
        result = call(*args, **{**kwargs, **objects})
        following = {name: self.following(name, result, objects[name]) for name in self.examples}
        regular = self.results_of(result, [following[name] for name in objects if following[name] is objects[name]])
        for name, value in following.items():
            parts = self._values(name, value, "the next value of the state")
            regular |= {
                tensor.output: part for tensor, part in zip(self.of(name), parts, strict=True) if not tensor.is_kept
            }
        return regular

    def results_of(self, result: Any, changed: Sequence[Any] = ()) -> dict[str, Any]:
        """Return the parts of a result of the model that are not state, by their names in `run`.

        A part is state if it is at the place of a next value, or is one of the objects that the call has changed.
        """
        keys = [key if key is not None else name for name, key in self.results.items()]
        return _regular(result, keys, {id(value) for value in changed if not isinstance(value, torch.Tensor)})

    def following(self, argument: str, result: Any, argument_value: Any) -> Any:
        """Return the next value of a state: a part of the result, or the object passed to the call."""
        key = self.results[argument]
        if key is not None:
            return _part(result, key, argument)
        next_value = result.get(argument) if isinstance(result, Mapping) else getattr(result, argument, None)
        return argument_value if next_value is None else next_value

    def _values(self, argument: str, value: Any, description: str) -> list[torch.Tensor]:
        """Return the tensors of a state's value, in the order of `of`.

        Raises InputError for a value whose tensors are at other paths than the example's.
        """
        expected = self.of(argument)
        parts = [part_at(value, tensor.path) for tensor in expected]
        lacking = [
            tensor.path for tensor, part in zip(expected, parts, strict=True) if not isinstance(part, torch.Tensor)
        ]
        part_ids = {id(part) for part in parts}
        more = [path for path, part in _tensors(value) if id(part) not in part_ids]
        if lacking or more:
            has = [f"no tensor at {_places(lacking)}"] if lacking else []
            has += [f"one that the example lacks at {_places(more)}"] if more else []
            raise InputError(
                f"{description} `{argument}` has {', and '.join(has)}",
                hint="a call has to return the keys, attributes and indices that it takes; where it adds tensors, give "
                "an example that a call has filled already",
            )
        return parts

    def object_of(self, argument: str, tensors: Sequence[torch.Tensor]) -> Any:
        """Return a copy of the example with copies of these tensors, since a call may write into them."""
        memo = {id(entry.example): tensor.clone() for entry, tensor in zip(self.of(argument), tensors, strict=True)}
        return copy.deepcopy(self.examples[argument], dict[int, Any](memo))


def state_of(
    source_name: str,
    signature: inspect.Signature,
    call: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    option: StateOption,
) -> ModelState:
    """Return the state of a model, found by running it once on its example.

    Raises InputError for an argument that the model lacks, a state without tensors, and a state with a Python number
    that a call changes, which would be frozen in an archive.
    """
    results = _results_option(option)
    unknown = [name for name in results if name not in signature.parameters]
    if unknown:
        raise InputError(f"state: {source_name} has no parameter {', '.join(map(repr, unknown))}")
    _, after = split_at_state(signature, args, kwargs, results)
    examples = {name: _detach(exportable_cache(after[name])) for name in results}
    tensors = [
        StateTensor(name, path, state_name(name, path), part)
        for name, example in examples.items()
        for path, part in _tensors(example)
    ]
    for name in results:
        if not any(tensor.argument == name for tensor in tensors):
            raise InputError(
                f"the state `{name}` of the example holds no tensors",
                hint="run the model once, and pass the resulting state",
            )
    twice = {tensor.name for tensor in tensors if sum(other.name == tensor.name for other in tensors) > 1}
    if twice:
        raise InputError(f"state: two tensors would have the name {', '.join(sorted(twice))}")
    first = ModelState(examples, results, tuple(tensors))
    return _measure(first, signature, call, args, kwargs)


def _measure(
    state: ModelState,
    signature: inspect.Signature,
    call: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> ModelState:
    """Return the state with the effect of one call on each of its tensors."""
    before, after = state.flat_arguments(signature, args, kwargs)
    in_state: dict[str, Any] = {}

    def watched(*args: Any, **kwargs: Any) -> Any:
        in_state.update({name: kwargs[name] for name in state.examples})
        plain_parts.update({name: _plain_parts(kwargs[name]) for name in state.examples})
        for tensor in state.tensors:
            before_call = part_at(in_state[tensor.argument], tensor.path)
            versions[tensor.input] = (before_call, before_call._version)
        return call(*args, **kwargs)

    plain_parts: dict[str, dict[Any, Any]] = {}
    versions: dict[str, tuple[torch.Tensor, int]] = {}
    with torch.no_grad():
        results = state.run(watched, before, after)
    for name, value in in_state.items():
        changed = [path for path, part in _plain_parts(value).items() if plain_parts[name].get(path, _NONE) != part]
        if changed:
            places = ", ".join(".".join(map(str, path)) for path in changed)
            raise InputError(
                f"a call changes {places} of the state `{name}`, which is not a tensor: an archive would freeze it",
                hint="keep it in a tensor, or export a wrapper that computes it from the tensors",
            )
    seen = []
    for tensor in state.tensors:
        new = results[tensor.output]
        if new.dim() != tensor.example.dim() or new.dtype != tensor.example.dtype:
            before_and_after = f"{_form(tensor.example)} before a call and {_form(new)} after it"
            raise InputError(f"the state `{tensor.argument}` has {before_and_after} in `{tensor.name}`")
        pairs = enumerate(zip(tensor.example.shape, new.shape, strict=True))
        growing = tuple(axis for axis, (old_size, new_size) in pairs if old_size != new_size)
        part, version = versions[tensor.input]
        is_kept = new is part and new._version == version
        seen.append(replace(tensor, growing=growing, is_kept=is_kept))
    return ModelState(state.examples, state.results, tuple(seen))


def as_call(args: Any, kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return (args, kwargs) for a tensor, a dict of named arguments, or several arguments."""
    if isinstance(args, Mapping):
        return (), {**args, **kwargs}
    return (args,) if isinstance(args, torch.Tensor) else tuple(args or ()), kwargs


def split_at_state(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any], names: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional arguments before the first state, and all others by name. Raises InputError."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as wrong:
        raise InputError(f"the model cannot take these arguments: {wrong}") from wrong
    missing = [name for name in names if bound.arguments.get(name) is None]
    if missing:
        raise InputError(f"state: the example has no {', '.join(map(repr, missing))}")
    in_order = [name for name, parameter in signature.parameters.items() if parameter.kind in _IN_ORDER][: len(args)]
    first = next((index for index, name in enumerate(in_order) if name in names), len(args))
    if len(args) > max(first, len(in_order)):
        raise InputError("state: a variable number of arguments cannot follow it")
    return tuple(args[:first]), {**dict(zip(in_order[first:], args[first:], strict=False)), **kwargs}


def _results_option(option: StateOption) -> dict[str, str | int | None]:
    if isinstance(option, str):
        return {option: None}
    return dict(option) if isinstance(option, Mapping) else dict.fromkeys(option)


def _detach(value: Any) -> Any:
    """Return a copy of an object with separate tensors, which need no gradients."""
    value = _separate_tensors(value)
    return copy.deepcopy(value, {id(part): part.detach().clone() for _, part in _tensors(value)})


def _separate_tensors(value: Any) -> Any:
    """Return nested containers with each tensor copied: a tensor that occurs twice has two next values."""
    return map_leaves(value, lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf)


def _tensors(value: Any) -> Iterator[tuple[tuple[Any, ...], torch.Tensor]]:
    return ((path, part) for path, part in parts_at_any_depth(value) if isinstance(part, torch.Tensor))


def _plain_parts(value: Any) -> dict[Any, Any]:
    return {path: part for path, part in parts_at_any_depth(value) if isinstance(part, _PLAIN)}


def _places(paths: Sequence[Path]) -> str:
    return ", ".join(f"`{'.'.join(map(str, path))}`" if path else "its place" for path in paths)


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of rank {tensor.dim()}"


def _part(result: Any, key: str | int, argument: str) -> Any:
    try:
        return result[key]
    except (KeyError, IndexError, TypeError):
        attribute = getattr(result, key, None) if isinstance(key, str) else None
        if attribute is None:
            raise InputError(f"state: the result has no {key!r}, which is declared as the next `{argument}`") from None
        return attribute


def _regular(result: Any, keys: Sequence[str | int], changed: set[int]) -> dict[str, Any]:
    """Return the results that are neither at one of the keys nor changed objects, by name."""
    if id(result) in changed:
        return {}
    if (parts := _direct_parts(result)) is not None:
        places = {key + len(parts) if isinstance(key, int) and key < 0 else key for key in keys}
        result = {key: part for key, part in parts.items() if key not in places and id(part) not in changed}
    rest = [(path, leaf) for path, leaf in leaves_with_path(result) if id(leaf) not in changed]
    results = Results()
    outputs = results.note(rest)
    regular: dict[str, Any] = dict(zip(results.names(), outputs, strict=True))
    others = [(path, leaf) for path, leaf in rest if not is_output(leaf) and leaf is not None]
    return regular | {".".join(map(str, path)): leaf for path, leaf in others}


def _direct_parts(result: Any) -> dict[Any, Any] | None:
    """Return the parts of a result by key, index or field; None for a result of one part."""
    if isinstance(result, Mapping):
        return dict(result)
    if isinstance(result, tuple | list):
        return dict(enumerate(result))
    if is_dataclass(result):
        return {field.name: getattr(result, field.name) for field in fields(result) if field.init}
    return None
