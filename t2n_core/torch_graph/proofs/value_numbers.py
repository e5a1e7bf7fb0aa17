"""Value numbering of captured programs: two programs compute the same if their outputs have equal numbers.

Two values share a number if they come from the same operator whose arguments have equal numbers, after simplification:
constants are folded, and operators that return their argument at these sizes are removed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import sympy
import torch
from torch.export.graph_signature import InputKind

from t2n_core.nnef.sizes.dims import Dim, Shape
from t2n_core.torch_graph import naming
from t2n_core.torch_graph.arguments import bind_schema
from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.custom_ops.definition import aten_equivalent
from t2n_core.torch_graph.custom_ops.module_calls import MODULE_CALL, calls
from t2n_core.torch_graph.graph.fx_nodes import SIZES
from t2n_core.torch_graph.graph.programs import DETACH_IN_PLACE
from t2n_core.torch_graph.proofs.identities import identity, is_reshape, simpler_arguments

SizeOf: TypeAlias = Callable[[Any], Dim]
"""Returns a PyTorch size in canonical form; raises CaptureError, a T2NError, for a size that depends on data."""
_FOLDED: Final = 1 << 16
"""Most elements of a constant that is folded here."""
_EXPANSIONS: Final = frozenset({"aten::expand", "aten::expand_as", "aten::broadcast_to"})
_FILLED: Final = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_FILLED_WITH: Final = frozenset({"full", "full_like", "new_full"})


class UnprovenError(ValueError):
    """A program holds something that this comparison does not support."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of a program."""

    number: int
    shape: Shape
    dtype: torch.dtype
    constant: torch.Tensor | None = None
    """Elements of a small constant; one element of a constant where `filled`."""
    filled: bool = False
    """True if all its elements are the same constant."""

    @property
    def element(self) -> Any:
        """The constant that all elements equal; None if there is none."""
        return self.constant.flatten()[0].item() if self.filled and self.constant is not None else None


class Numbering:
    """Assigns equal numbers to equal values, also of different programs of the same model."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._reshaped: dict[int, Value] = {}
        """The number of a reshaped value -> the value before."""

    def outputs(self, program: torch.export.ExportedProgram, size_of: SizeOf) -> list[Any]:
        """Return a key for each output of a program. Raises UnprovenError, CaptureError."""
        return _Reader(self, program, size_of).outputs()

    def number_of(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def opaque(self, key: Any, shape: Shape, dtype: torch.dtype) -> Value:
        """Return a value that only its key identifies; all empty values of a shape are equal."""
        if 0 in shape:
            key = ("empty", shape, dtype)
        return Value(self.number_of(key), shape, dtype)

    def reshape(self, source: Value, shape: Shape) -> Value:
        """Return a value with another value's elements, in order."""
        root = self._reshaped.get(source.number, source)
        if root.shape == shape:
            return root
        result = self.opaque(("reshaped", root.number, shape), shape, source.dtype)
        self._reshaped[result.number] = root
        return result

    def constant(self, elements: torch.Tensor, shape: Shape | None = None) -> Value:
        """Return a constant; with `shape`, one filled with the first element."""
        filled = shape is not None or (elements.numel() > 0 and bool((elements == elements.flatten()[0]).all()))
        shape = tuple(elements.shape) if shape is None else shape
        if 0 in shape:
            return self.opaque(None, shape, elements.dtype)
        if filled:
            first = elements.flatten()[:1].clone()
            return Value(self.number_of(("filled", _content(first), shape)), shape, elements.dtype, first, filled=True)
        return Value(self.number_of(("constant", _content(elements), shape)), shape, elements.dtype, elements)


class _Reader:
    """Numbers the values that the outputs of one program depend on."""

    def __init__(self, numbering: Numbering, program: torch.export.ExportedProgram, size_of: SizeOf) -> None:
        self._numbering = numbering
        self._program = program
        self._size_of = size_of
        self._values: dict[torch.fx.Node, Any] = {}
        self._inputs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}

    def outputs(self) -> list[Any]:
        (last,) = [node for node in self._program.graph.nodes if node.op == "output"]
        needed, pending = set[torch.fx.Node](), [last]
        while pending:
            for node in pending.pop().all_input_nodes:
                if node not in needed:
                    needed.add(node)
                    pending.append(node)
        users = iter(range(len(self._inputs)))
        for node in self._program.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._placeholder(node, users)
            elif node in needed:
                self._values[node] = self._read(node)
        return [self._key(output) for output in last.args[0]]

    def _placeholder(self, node: torch.fx.Node, users: Any) -> Any:
        spec, fake = self._inputs[node.name], node.meta.get("val")
        if spec.kind is InputKind.USER_INPUT:
            key = ("input", next(users))
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            elements = self._program.constants[spec.target]
            if isinstance(elements, torch.Tensor) and elements.numel() <= _FOLDED:
                return self._numbering.constant(elements.detach())
            key = ("state", id(elements))
        else:
            key = ("state", spec.target)
        if not isinstance(fake, torch.Tensor):
            return self._numbering.number_of(key)
        return self._numbering.opaque(key, self._shape(fake), fake.dtype)

    def _shape(self, fake: torch.Tensor) -> Shape:
        return tuple(self._size_of(size) for size in fake.shape)

    def _read(self, node: torch.fx.Node) -> Any:
        value = node.meta.get("val")
        target: Any = node.target
        if isinstance(value, bool | torch.SymBool | torch.SymFloat):
            raise UnprovenError(f"{node} is a condition, or a size in floating point")
        if isinstance(value, SIZES):
            return self._size_of(value) if isinstance(value, int | torch.SymInt) else value
        if target is operator.getitem:
            source: Any = self._resolve(node.args[0])
            return source[node.args[1]]
        is_operator = isinstance(target, OpOverload)
        if not is_operator or (target._schema.is_mutable and target is not DETACH_IN_PLACE):
            raise UnprovenError(f"{node} is not an operator without side effects")
        target = aten_equivalent(target)
        kind = naming.kind_of(target)
        if kind.partition(".")[0] == "aten::as_strided":
            raise UnprovenError(f"{node} depends on the memory layout of elements")
        bound = {
            name: self._resolve(argument) for name, argument in bind_schema(target, node.args, node.kwargs).items()
        }
        if kind == MODULE_CALL:
            call: Any = calls[bound["key"]]
            bound["key"] = (id(call.writer), repr(call.kept), call.places, str(call.structure))
        if isinstance(value, torch.Tensor):
            return self._tensor(target, kind, bound, value)
        if not isinstance(value, list | tuple):
            raise UnprovenError(f"{node} does not return a tensor")
        key = self._call(kind, bound)
        return [
            None if result is None else self._numbering.opaque((key, index), self._shape(result), result.dtype)
            for index, result in enumerate(value)
        ]

    def _tensor(self, target: Any, kind: str, bound: Mapping[str, Any], fake: torch.Tensor) -> Value:
        shape, dtype = self._shape(fake), fake.dtype
        same = identity(kind, bound, shape, dtype)
        if isinstance(same, Value):
            return same
        folded = self._fold(target, kind, bound, shape, dtype)
        if folded is not None:
            return folded
        source = bound.get("self")
        if isinstance(source, Value) and source.dtype == dtype:
            if is_reshape(kind, bound, shape):
                return self._numbering.reshape(source, shape)
            if kind in _EXPANSIONS:
                return self._numbering.opaque(("expanded", source.number, shape), shape, dtype)
        call = self._call(kind, simpler_arguments(kind, bound))
        return self._numbering.opaque((*call, shape, dtype), shape, dtype)

    def _call(self, kind: str, bound: Mapping[str, Any]) -> Any:
        return kind, tuple((name, self._key(argument)) for name, argument in bound.items())

    def _fold(self, target: Any, kind: str, bound: Mapping[str, Any], shape: Shape, dtype: torch.dtype) -> Value | None:
        """Return the constant that an operator computes from constants; None for other arguments, or a large result."""
        name = kind.removeprefix("aten::").partition(".")[0]
        leaves = _leaves(list(bound.values()))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Value)]
        plain = target.namespace == "aten" and torch.Tag.nondeterministic_seeded not in target.tags
        if not plain or name.startswith(("empty", "new_empty")) or any(tensor.constant is None for tensor in tensors):
            return None
        if name in _FILLED or name in _FILLED_WITH:
            fill = _FILLED.get(name, bound.get("fill_value"))
            if isinstance(fill, bool | int | float):
                return self._numbering.constant(torch.full((1,), fill, dtype=dtype), shape)
        if (kind in _EXPANSIONS or is_reshape(kind, bound, shape)) and all(tensor.filled for tensor in tensors):
            return self._numbering.constant(_element(tensors[0]), shape)
        if any(isinstance(leaf, sympy.Basic) for leaf in leaves):
            return None
        if tensors and torch.Tag.pointwise in target.tags and all(tensor.filled for tensor in tensors):
            elements = {k: _element(value) if isinstance(value, Value) else value for k, value in bound.items()}
            return self._numbering.constant(_result(target, elements), shape)
        if not all(_is_small(sizes) for sizes in (shape, *(tensor.shape for tensor in tensors))):
            return None
        return self._numbering.constant(_result(target, {k: _concrete(value) for k, value in bound.items()}))

    def _resolve(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            if argument not in self._values:
                raise UnprovenError(f"{argument} is not a value")
            return self._values[argument]
        if isinstance(argument, list | tuple):
            return [self._resolve(item) for item in argument]
        return self._size_of(argument) if isinstance(argument, torch.SymInt) else argument

    def _key(self, argument: Any) -> Any:
        argument = self._resolve(argument)
        if isinstance(argument, Value):
            return "tensor", argument.number
        if isinstance(argument, list):
            return tuple(self._key(item) for item in argument)
        # 1, 1.0 and True are different arguments
        return type(argument).__name__ if isinstance(argument, bool | float) else "", argument


def _content(elements: torch.Tensor) -> tuple[Any, ...]:
    # a copy: one element is contiguous with any stride, and a view in bytes needs a stride of 1
    plain = elements.detach().cpu().clone(memory_format=torch.contiguous_format)
    return str(plain.dtype), tuple(plain.shape), plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def _element(value: Value) -> torch.Tensor:
    if value.constant is None:
        raise UnprovenError("a value that is not a constant")
    return value.constant.reshape([1] * len(value.shape))


def _result(operator: Any, arguments: Mapping[str, Any]) -> torch.Tensor:
    """Return the result of an operator. Raises UnprovenError for arguments that it rejects, such as a negative size."""
    try:
        result: torch.Tensor = operator(**arguments)
    except Exception as cause:
        raise UnprovenError(f"{operator} fails: {cause}") from cause
    return result


def _concrete(argument: Any) -> Any:
    if isinstance(argument, Value):
        if argument.filled:
            return _element(argument).expand([int(size) for size in argument.shape])
        return argument.constant
    return [_concrete(item) for item in argument] if isinstance(argument, list) else argument


def _is_small(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape) and math.prod(map(int, shape)) <= _FOLDED


def _leaves(arguments: Sequence[Any]) -> list[Any]:
    leaves: list[Any] = []
    for argument in arguments:
        leaves += _leaves(argument) if isinstance(argument, list) else [argument]
    return leaves
