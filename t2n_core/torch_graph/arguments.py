"""Arguments of torch operators: bound to the operator's schema by name, and the sizes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch

from t2n_core.errors import InputError
from t2n_core.nnef.sizes.dims import Shape
from t2n_core.torch_graph.compat.operators import find_packet


def bind_schema(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of the operator's schema, defaults filled in."""
    bound: dict[str, Any] = {}
    for index, argument in enumerate(target._schema.arguments):
        if index < len(args) and not argument.kwarg_only:
            bound[argument.name] = args[index]
        elif argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
        else:
            bound[argument.name] = argument.default_value
    return bound


def overload_of(kind: str) -> Any:
    """Return the operator that a kind names. Raises InputError."""
    overload = getattr(find_packet(kind), kind.partition("::")[2].partition(".")[2] or "default", None)
    if overload is None:
        raise InputError(
            f"PyTorch has no operator {kind!r}",
            hint="a kind is namespace, name and overload, if it is not the default one: aten::relu, aten::add.Tensor",
        )
    return overload


def overload_for(kind: str, op_ref: Any) -> Any:
    """Return the operator for an `op_ref`: an overload, a function of PyTorch with the name in `kind`, or None.

    Raises InputError for anything else.
    """
    if hasattr(op_ref, "_schema"):
        return op_ref
    name = kind.partition("::")[2].partition(".")[0]
    homes = (torch, torch.nn.functional, torch.Tensor)
    candidates = (find_packet(kind), *(getattr(home, name, None) for home in homes))
    if op_ref is None or any(candidate is op_ref for candidate in candidates):
        return overload_of(kind)
    raise InputError(
        f"op_ref of {kind} is {op_ref!r}, neither an overload of an operator nor PyTorch's function {name}",
        hint="leave op_ref out, or give one such as torch.ops.aten.relu.default",
    )


def by_schema(kind: str, op_ref: Any, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return positional arguments by name; those for keywords only follow the others. Raises InputError."""
    schema = op_ref._schema
    if len(inputs) > len(schema.arguments):
        raise InputError(f"{kind} takes {len(schema.arguments)} arguments, not {len(inputs)}: {schema}")
    bound = bind_schema(op_ref, (), {a.name: value for a, value in zip(schema.arguments, inputs, strict=False)})
    missing = [a.name for a in schema.arguments[len(inputs) :] if not a.has_default_value()]
    if missing:
        raise InputError(f"{kind} lacks its argument {', '.join(missing)}: {schema}")
    return bound


def call_overload(op_ref: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the result of an operator. Raises InputError for arguments that it refuses."""
    schema = op_ref._schema
    try:
        return op_ref(
            *[arguments[a.name] for a in schema.arguments if not a.kwarg_only],
            **{a.name: arguments[a.name] for a in schema.arguments if a.kwarg_only},
        )
    except (RuntimeError, TypeError, ValueError, IndexError) as refused:
        raise InputError(f"{schema.name} refuses these tensors: {refused}") from refused


def sizes_in(argument: Any) -> Iterator[sympy.Expr]:
    """Yield the size expressions in an argument."""
    if isinstance(argument, sympy.Expr):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from sizes_in(item)


def replace_sizes(argument: Any, swap: Callable[[sympy.Expr], Any]) -> Any:
    """Return `argument` with every size expression in it passed through `swap`; lists stay lists."""
    if isinstance(argument, sympy.Expr):
        return swap(argument)
    if isinstance(argument, list | tuple):
        return [replace_sizes(item, swap) for item in argument]
    return argument


def sizes_of(shapes: Sequence[Shape], tensors: Sequence[torch.Tensor]) -> dict[str, int]:
    """Return the sizes that tensors give the symbols which are the whole extent of an axis of these shapes."""
    axes = [pair for shape, t in zip(shapes, tensors, strict=True) for pair in zip(shape, t.shape, strict=False)]
    return {extent.name: int(size) for extent, size in axes if isinstance(extent, sympy.Symbol)}
