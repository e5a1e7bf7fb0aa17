"""The example call of a model: its arguments, and names for their tensors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.frontend.pytree.objects import holds_tensor, own_copy
from t2n_core.torch_graph.frontend.pytree.structure import Path, leaves, leaves_with_path, map_leaves
from t2n_core.torch_graph.frontend.sources import Source, source_of
from t2n_core.torch_graph.frontend.state.state import ModelState


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """The example call of a model: positional and keyword arguments, and the names of their tensors."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]
    """Name of each tensor, in the order of the flattened arguments."""

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]

    def arguments_with(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return (args, kwargs) with these tensors instead of the example's, and other objects copied for one call."""
        supply = iter(tensors)

        def of_the_call(leaf: Any) -> Any:
            return next(supply) if isinstance(leaf, torch.Tensor) else own_copy(leaf)

        return map_leaves((self.args, self.kwargs), of_the_call)  # type: ignore[no-any-return]


def bind_inputs(
    model: Any, args: Any, kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None
) -> ModelInputs:
    """Return the call for `args`: a tensor, a sequence of arguments, or a dict of named tensors.

    Numpy arrays are converted to tensors.

    A dict is passed by keyword. It is passed in order only if none of its keys is a parameter, and all of them are in
    `input_names` or the method takes any number of arguments. If `input_names` are its keys, they define the order.
    `model` is a Source or any model that `source_of` accepts. Without any arguments, an exported program's are used.
    `input_names` name the tensors, or the arguments: for `(x, {"a": y, "b": z})` the names `p` and `q` become `p`,
    `q_a` and `q_b`; the name of an argument without a tensor is unused.

    Raises InputError for arguments that the method cannot take, and for an object whose tensors PyTorch's pytrees do
    not find, since they would be constants of the archive.
    """
    source = model if isinstance(model, Source) else source_of(model)
    args, keywords = _with_tensors(args), _with_tensors(dict(kwargs or {}))
    given_names: list[str] | None = None
    signature = source.signature()
    if args is None:
        args, keywords = _example(source, keywords)
    if isinstance(args, torch.Tensor):
        positional: tuple[Any, ...] = (args,)
    elif isinstance(args, Mapping):
        if input_names is not None and set(input_names) == set(args):
            args = {name: args[name] for name in input_names}
        given_names = [str(k) for k in args]
        if _is_by_keyword(source, signature, given_names, input_names):
            positional, keywords = (), {**args, **keywords}
        else:
            positional = tuple(args.values())
    else:
        positional = tuple(args)
    if source.is_script or source.program is not None:
        positional, keywords = _by_place(source, signature, positional, keywords)
    try:
        bound = signature.bind(*positional, **keywords)
    except TypeError as wrong:
        raise InputError(f"{source.name} cannot take these arguments: {wrong}") from wrong
    if source.state is not None:
        positional, keywords = source.state.flat_arguments(signature, positional, keywords)
    leaves = list(leaves_with_path((positional, keywords)))
    by_position = _parameter_names(bound, len(positional))
    for path, leaf in leaves:
        if not isinstance(leaf, torch.Tensor) and holds_tensor(leaf):
            raise _frozen(source, _leaf_name(path, by_position, source.state), leaf)
        if isinstance(leaf, torch.Tensor) and leaf.is_quantized:
            raise InputError(
                f"`{_leaf_name(path, by_position, source.state)}` of {source.name} is a quantised tensor, which "
                "archives do not support",
                hint="pass a float tensor, and quantise it in the model: torch.ao.quantization.QuantStub at its start",
            )
    paths = [path for path, leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not paths:
        raise InputError("the example inputs hold no tensor", hint="pass at least one tensor")
    names = list(input_names) if input_names is not None else None
    if names is None and source.state is None and given_names is not None and len(given_names) == len(paths):
        names = given_names
    if names is None:
        names = [_leaf_name(path, by_position, source.state) for path in paths]
    if source.state is not None and len(names) == len(paths) - len(source.state.tensors):
        names = _with_states(names, paths, source.state)
    places: list[Path] = [*((0, index) for index in range(len(positional))), *((1, key) for key in keywords)]
    if len(names) != len(paths) and len(names) == len(places):
        names = [_tensor_name(names[places.index(path[:2])], path) for path in paths]
    if len(names) != len(paths):
        among = f" in {len(places)} arguments" if len(places) != len(paths) else ""
        raise InputError(f"{len(names)} input names for {len(paths)} input tensors{among}: {', '.join(names)}")
    if len(set(names)) != len(names):
        raise InputError(f"input names are not unique: {', '.join(names)}")
    positional, keywords = _separate_tensors((positional, keywords), source)
    return ModelInputs(positional, keywords, tuple(names))


def _separate_tensors(arguments: Any, source: Source) -> Any:
    """Return the arguments with a copy of each tensor that occurs twice, or is a weight of the model.

    PyTorch treats one tensor as one input, so the captured graph would read one input instead of several.
    """
    seen = {id(weight) for weight in source.weights.values()}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in seen:
            seen.add(id(leaf))
            return leaf
        return leaf.detach().clone()

    return map_leaves(arguments, own)


def _frozen(source: Source, name: str, value: Any) -> InputError:
    """Return the error for an object whose tensors would be constants of the archive."""
    kind = type(value).__name__
    return InputError(
        f"`{name}` of {source.name} is a {kind} that holds tensors, which would not be inputs: the class is not "
        "registered as a pytree of PyTorch, and the archive would hold the example's values as constants",
        hint=f'state="{name}" makes its tensors inputs, and outputs where a call changes them; or export a wrapper '
        f"whose forward takes the tensors and builds the {kind} from them",
    )


def _is_by_keyword(
    source: Source, signature: inspect.Signature, keys: Sequence[str], input_names: Sequence[str] | None
) -> bool:
    """Return whether a dict with these keys is passed by keyword. Raises InputError for a key without a parameter."""
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    unknown = [key for key in keys if key not in signature.parameters]
    if not unknown or inspect.Parameter.VAR_KEYWORD in kinds:
        return True
    in_order = set(unknown) <= set(input_names) if input_names else inspect.Parameter.VAR_POSITIONAL in kinds
    if in_order and len(unknown) == len(keys):
        return False
    raise InputError(
        f"{source.name} has no parameter {', '.join(map(repr, unknown))}; it has {', '.join(signature.parameters)}",
        hint="name inputs like the parameters, or pass them in order and their names with input_names=[…]",
    )


def _example(source: Source, keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if source.example is None:
        raise InputError(f"{source.name} needs example inputs", hint="only an exported program contains its own")
    args, kwargs = source.example
    return args, {**kwargs, **keywords}


def _by_place(
    source: Source, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as the captured graph takes them: a script's by position, an exported program's as given."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as wrong:
        raise InputError(f"{source.name} cannot take these arguments: {wrong}") from wrong
    if source.is_script:
        bound.apply_defaults()
        return tuple(bound.arguments.values()), {}
    example_args, example_kwargs = source.example or ((), {})
    values = list(bound.arguments.items())
    by_place = tuple(value for _, value in values[: len(example_args)])
    by_name = dict(values[len(example_args) :])
    return by_place, {name: by_name[name] for name in example_kwargs if name in by_name}


def _parameter_names(bound: inspect.BoundArguments, count: int) -> list[str]:
    names: list[str] = []
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(bound.arguments.get(name, ())))]
        else:
            names.append(name)
    return names[:count]


def _with_states(names: Sequence[str], paths: Sequence[Path], state: ModelState) -> list[str]:
    """Return the names of all tensors, given the names of tensors that are not state."""
    supply = iter(names)
    return [str(path[2]) if path[0] == 1 and path[1] in state.examples else next(supply) for path in paths]


def _leaf_name(path: Path, by_position: Sequence[str], state: ModelState | None) -> str:
    if state is not None and path[0] == 1 and path[1] in state.examples:
        return str(path[2])
    first = by_position[path[1]] if path[0] == 0 else str(path[1])
    return _tensor_name(first, path)


def _tensor_name(argument: str, path: Path) -> str:
    """Return the name of the tensor at this path in an argument."""
    return re.sub(r"\W", "_", "_".join([argument, *(str(key) for key in path[2:])]))


def _with_tensors(arguments: Any) -> Any:
    """Return arguments with each numpy array, at any depth, replaced by a new tensor.

    Raises InputError for an array whose dtype PyTorch does not support.
    """
    return map_leaves(arguments, _tensor)


def _tensor(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    try:
        return torch.from_numpy(leaf.astype(leaf.dtype.newbyteorder("="), order="C", copy=True))
    except TypeError:
        raise InputError(
            f"no tensor has the type {leaf.dtype} of a numpy array of shape {list(leaf.shape)} among the inputs",
            hint="convert it with .astype(…)",
        ) from None
