"""Arguments of an operation, from the values of its text to what a definition takes."""

from __future__ import annotations

import inspect
import itertools
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from t2n_core.dialect.registry import Definition
from t2n_core.dialect.sizes import Size
from t2n_core.dialect.tensors import Tensor, datum_type, tensor_of
from t2n_core.errors import InputError, SpecError
from t2n_core.nnef.signatures import REQUIRED, Signature
from t2n_core.nnef.spec import signatures_of

_READ_AS: Final = {("tract_core_qconv", "groups"): "group"}
"""Arguments that tract writes and reads under another name than its signatures declare."""
_GRIDS: Final = ("a0", "a_scale", "b0", "b_scale", "c0", "c_scale")
_OF_ANY_TYPE: Final = {
    "tract_core_range": ("start", "end", "step"),
    "tract_core_qconv": _GRIDS,
    "tract_core_qmatmul": _GRIDS,
}
"""Arguments that are declared as one number, and may be tensors of any type and shape."""


def bind(name: str, arguments: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the arguments of an operator by name, converted to the types of the newest signature that they fit.

    An argument that releases have renamed has its newest name. One whose name is in no release is left out if
    all others are given, since tract looks arguments up by the names that it knows; else it is a misspelt one. Raises
    SpecError if they fit no signature.
    """
    arguments = [(_READ_AS.get((name, key), key), value) for key, value in arguments]
    parameters = {parameter.name for signature in _signatures(name) for parameter in signature.parameters}
    others = [argument for argument in arguments if not argument[0] or argument[0] in parameters]
    if any(len(others) == len(signature.parameters) for signature in _signatures(name)):
        arguments = others
    problem = SpecError(f"`{name}` is no operator of any release", op=name)
    for signature in _signatures(name):
        try:
            bound = bind_to(signature, arguments)
            names = newest_names(name, signature)
            return {names[key]: value for key, value in bound.items()}
        except SpecError as wrong:
            problem = wrong
    raise problem


def newest_names(name: str, signature: Signature) -> dict[str, str]:
    """Return the names of a signature's parameters in the newest one, if both have as many, by the names in it."""
    newest = _signatures(name)[0].parameters
    names = [parameter.name for parameter in signature.parameters]
    return dict(
        zip(names, (parameter.name for parameter in newest) if len(newest) == len(names) else names, strict=True)
    )


def bind_to(signature: Signature, arguments: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the arguments of a signature by name, defaults included. Raises SpecError if they do not fit."""
    positional = [value for name, value in arguments if not name]
    passed = signature.bind(positional, {name: value for name, value in arguments if name})
    bound = {}
    for parameter in signature.parameters:
        if parameter.name in passed:
            bound[parameter.name] = convert(passed[parameter.name], parameter.type)
        elif parameter.default is not REQUIRED and parameter.default is not None:
            bound[parameter.name] = convert(parameter.default, parameter.type)
    return bound


@cache
def _signatures(name: str) -> tuple[Signature, ...]:
    free = _OF_ANY_TYPE.get(name, ())
    return tuple(
        replace(
            signature,
            parameters=tuple(replace(p, type="tensor<?>") if p.name in free else p for p in signature.parameters),
        )
        for signature in signatures_of(name)
    )


def convert(value: Any, type_: str) -> Any:
    """Return a value as the type of its parameter: `integer`, `scalar[]`, `(string,tensor<scalar>)[]`, ….

    Raises InputError for a value of another type.
    """
    if type_.endswith("[]"):
        return _items(value, type_.removesuffix("[]"))
    if type_.startswith("("):
        parts = type_[1:-1].split(",")
        if not isinstance(value, list | tuple) or len(value) > len(parts):
            raise InputError(f"{value!r} is not a tuple of {', '.join(parts)}")
        return tuple(convert(item, part) for item, part in zip(value, parts, strict=False))
    if type_.startswith("tensor<"):
        return tensor_of(value)
    if type_ == "integer":
        return _integer(value)
    if type_ == "scalar":
        return float(_number(value))
    if type_ == "logical":
        return bool(_number(value))
    if type_ == "string" and not isinstance(value, str):
        raise InputError(f"{value!r} is not a string")
    return value


def _items(value: Any, type_: str) -> list[Any]:
    if isinstance(value, Tensor) and not type_.startswith("tensor<"):
        return [convert(Size(item), type_) for item in np.atleast_1d(value.array)]
    if isinstance(value, Tensor):
        return [value]
    items = value if isinstance(value, list | tuple) else [value]  # as tract reads a single value
    if type_ == "integer":  # tract joins sizes and tensors of sizes
        joined = ([item] if not isinstance(item, Tensor) or not item.shape else map(Size, item.array) for item in items)
        items = list(itertools.chain.from_iterable(joined))
    return [convert(item, type_) for item in items]


def _integer(value: Any) -> int:
    number = _number(value)
    if isinstance(number, float) and not number.is_integer():
        raise InputError(f"{number} is not an integer")
    return Size(number) if isinstance(value, Tensor | Size) else int(number)


def _number(value: Any) -> Any:
    if isinstance(value, Tensor) and value.array.size == 1:
        return value.array.reshape(()).item()
    if isinstance(value, int | float):
        return value
    raise InputError(f"{value!r} is not a number")


def tensors_in(arguments: Mapping[str, Any]) -> list[Tensor]:
    """Return the tensors among arguments, also in lists."""
    tensors = []
    for value in arguments.values():
        tensors += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, Tensor)]
    return tensors


def common_type(tensors: Sequence[Tensor]) -> np.dtype[Any]:
    """Return the data type that operands are cast to: the type of a non-constant operand, or the larger of two.

    A constant of one element, and after that any constant, takes the type of the other operand: the text has no types.
    Raises InputError for operands that have no common type.
    Source: tract nnef/src/registry.rs.
    """
    common, constant, single = tensors[0].dtype, tensors[0].is_constant, np.prod(tensors[0].shape) == 1
    for tensor in tensors[1:]:
        one_single = np.prod(tensor.shape) == 1
        if constant and single:
            common = tensor.dtype
        elif tensor.is_constant and one_single:
            pass
        elif constant:
            common = tensor.dtype
        elif not tensor.is_constant:
            if common.kind != tensor.dtype.kind:
                raise InputError(f"{common} and {tensor.dtype} have no common type")
            common = np.promote_types(common, tensor.dtype)
        constant, single = constant and tensor.is_constant, single and one_single
    return common


def call(definition: Definition, arguments: Mapping[str, Any]) -> Any:
    """Return what the function of a definition returns, with its arguments as it takes them."""
    function = definition.function
    if definition.common:
        common = common_type(tensors_in(arguments))
        arguments = {n: v.as_type(common) if isinstance(v, Tensor) else v for n, v in arguments.items()}

    def as_taken(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.raw() if definition.raw else value.array
        return [as_taken(item) for item in value] if isinstance(value, list) else value

    unknown = [name for name in arguments if _python_name(name) not in _parameters(function)]
    if unknown:
        raise SpecError(f"the definition of `{definition.name}` takes no `{unknown[0]}`", op=definition.name)
    return function(**{_python_name(name): as_taken(value) for name, value in arguments.items()})


@cache
def _parameters(function: Any) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def _python_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def result_types(definition: Definition, arguments: Mapping[str, Any], count: int) -> list[np.dtype[Any] | None]:
    """Return the data types of an operation's results; None means the array's own type."""
    rules = definition.result.split()
    rules += rules[-1:] * (count - len(rules))
    tensors = tensors_in(arguments)

    def dtype_of(rule: str) -> np.dtype[Any] | None:
        if rule == "computed" or (rule == "same" and not tensors):
            return None
        if rule == "common":
            return common_type(tensors)
        if rule == "same":
            return tensors[0].dtype
        if rule not in arguments:
            return np.dtype(rule)
        argument = arguments[rule]
        return datum_type(argument) if isinstance(argument, str) else argument.dtype

    return [dtype_of(rule) for rule in rules[:count]]
