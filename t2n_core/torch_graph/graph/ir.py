"""The captured model as a plain graph: tensors and torch operators, arguments bound to the torch schema by name.

graph = TorchModuleTracer(model, (x,)).trace()
for op in graph.op_nodes:
    print(op.kind, op.module_path, [v.name for v in op.inputs])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch

from t2n_core.errors import Origin
from t2n_core.nnef.options.weight_choice import WeightForm
from t2n_core.nnef.sizes.dims import Shape, is_static, shape_text
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable


@dataclass(frozen=True, slots=True, eq=False)
class StoredWeight:
    """A weight in the storage format of the archive."""

    form: WeightForm
    numbers: torch.Tensor
    """The values that the engine computes with, in the model's shape and dtype."""
    scales: torch.Tensor | None = None
    """Scales: of int8 in a shape that broadcasts against the values, of q4_0 one for each block."""


@dataclass(frozen=True, slots=True, eq=False)
class FoldedNorm:
    """A filter or bias with a batch norm folded in, and the weights it was computed from."""

    is_filter: bool
    filter: TensorVariable
    start: TensorVariable | None
    """The bias of the product, if it has one."""
    mean: TensorVariable
    var: TensorVariable
    weight: TensorVariable | None
    bias: TensorVariable | None
    eps: float


@dataclass(slots=True, eq=False)
class TensorVariable:
    """One tensor. `data` is set for weights and for constants folded at export; other tensors are computed."""

    name: str
    shape: Shape
    dtype: torch.dtype
    data: torch.Tensor | None = field(default=None, repr=False)
    label: str = ""
    """Name of a weight in the model's state_dict; empty for other tensors."""
    fake: torch.Tensor | None = field(default=None, repr=False)
    """The fake tensor of capture: shapes and strides for PyTorch's own decompositions."""
    producer: TorchOp | None = field(default=None, repr=False)
    stored: StoredWeight | None = field(default=None, repr=False)
    """The storage format of a weight if it is not the plain one; `data` is then rounded to it."""
    folded_norm: FoldedNorm | None = field(default=None, repr=False)
    """The weights that `data` was computed from, if a norm was folded into it."""
    moved: TorchOp | None = field(default=None, repr=False)
    """The operator that computed `data`, if it only moves elements of a weight."""

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.name}: {str(self.dtype).removeprefix('torch.')}{shape_text(self.shape)}"


class FixedTensorList(tuple[Any, ...]):
    """A list of tensors whose length is known: an argument such as `cat`'s, or the results of `split`."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class TorchOp:
    """One call of a torch operator."""

    kind: str
    """`aten::lstm.input`: namespace, name and overload (left out where it is `default`)."""
    arguments: dict[str, Any]
    """Schema name -> argument or default: TensorVariable, FixedTensorList, size expression, number, dtype, None, …"""
    outputs: tuple[TensorVariable | None, ...]
    """None for a result without a user."""
    op_ref: Any = field(repr=False)
    origin: Origin | None = field(default=None, repr=False)
    scope: str = ""
    """Name of the node, unique in the graph."""
    returns_list: bool = False
    refusal: str = ""
    """Reason why the operator has no decomposition, if one was tried and refused."""

    @property
    def module_path(self) -> str:
        return self.origin.module_path if self.origin else ""

    @property
    def inputs(self) -> tuple[TensorVariable, ...]:
        """Return all tensors among the arguments, in order."""
        return tuple(tensors_in(list(self.arguments.values())))

    def call_op(self, *tensors: torch.Tensor) -> Any:
        """Call the torch operator itself with these tensors in place of `inputs`."""
        supply = iter(tensors)
        return self.op_ref(**{k: replace_tensors(v, lambda _: next(supply)) for k, v in self.arguments.items()})

    def realise_output_type_and_size(self) -> tuple[tuple[torch.dtype, Shape] | None, ...]:
        """Return dtype and shape of each result, as capture found them."""
        return tuple(None if o is None else (o.dtype, o.shape) for o in self.outputs)

    def __str__(self) -> str:
        results = ", ".join("_" if o is None else str(o) for o in self.outputs)
        arguments = ", ".join(f"{k}={_show(v)}" for k, v in self.arguments.items())
        where = f"   # {self.origin.source}" if self.origin and self.origin.source else ""
        return f"{results} = {self.kind}({arguments}){where}"


@dataclass(slots=True)
class TorchModuleIRGraph:
    """A captured model: inputs and outputs in the order of the flattened arguments and results."""

    inputs: list[TensorVariable]
    outputs: list[TensorVariable]
    op_nodes: list[TorchOp]
    weights: list[TensorVariable]
    table: SymbolTable = field(repr=False)
    """Size expressions of PyTorch and ours, both ways."""
    storage_notes: tuple[str, ...] = ()
    """A line for each reason why weights are stored plainly although another storage format was chosen."""
    open_masks: frozenset[int] = frozenset()
    """Identities of the attention masks that are proven to have no fully masked row."""

    def copy(self) -> TorchModuleIRGraph:
        """Return a graph of the same tensors, with separate lists and operators."""
        ops = [replace(op, arguments=dict(op.arguments)) for op in self.op_nodes]
        return replace(
            self, inputs=list(self.inputs), outputs=list(self.outputs), op_nodes=ops, weights=list(self.weights)
        )

    @property
    def reads_elements(self) -> bool:
        """Return whether an operator takes a number that the model's Python read from a tensor."""
        arguments = (a for op in self.op_nodes for a in op.arguments.values())
        numbers = (a for a in arguments if isinstance(a, torch.SymInt | torch.SymFloat))
        return not all(self.table.knows(number.node.expr) for number in numbers)

    @property
    def data_nodes(self) -> list[TensorVariable]:
        """Return every tensor: inputs, weights, results."""
        produced = [o for op in self.op_nodes for o in op.outputs if o is not None]
        return [*self.inputs, *self.weights, *produced]

    def bounds(self) -> Iterator[sympy.Expr]:
        """Return all sizes among the operators' arguments: bounds, lengths, shapes."""
        for op in self.op_nodes:
            yield from _sizes_in(list(op.arguments.values()))

    def used_ops(self) -> list[TorchOp]:
        """Return the operators that some output depends on, in order."""
        wanted = {id(v) for v in self.outputs}
        kept: list[TorchOp] = []
        for op in reversed(self.op_nodes):
            if any(o is not None and id(o) in wanted for o in op.outputs):
                kept.append(op)
                wanted.update(id(v) for v in op.inputs)
        return kept[::-1]

    def __str__(self) -> str:
        lines = [f"inputs: {', '.join(map(str, self.inputs))}"]
        lines += [f"  {op}" for op in self.op_nodes]
        lines.append(f"outputs: {', '.join(map(str, self.outputs))}")
        return "\n".join(lines)


def _sizes_in(argument: Any) -> Iterator[sympy.Expr]:
    if isinstance(argument, sympy.Expr):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _sizes_in(item)


def tensors_in(argument: Any) -> Iterator[TensorVariable]:
    if isinstance(argument, TensorVariable):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from tensors_in(item)


def replace_tensors(argument: Any, swap: Any) -> Any:
    """Return `argument` with every TensorVariable in it passed through `swap`; lists stay lists."""
    if isinstance(argument, TensorVariable):
        return swap(argument)
    if isinstance(argument, list | tuple):
        return [replace_tensors(item, swap) for item in argument]
    return argument


def replace_sizes(argument: Any, swap: Callable[[sympy.Expr], Any]) -> Any:
    """Return `argument` with every size expression in it passed through `swap`; lists stay lists."""
    if isinstance(argument, sympy.Expr):
        return swap(argument)
    if isinstance(argument, list | tuple):
        return [replace_sizes(item, swap) for item in argument]
    return argument


def is_constant(op: TorchOp) -> bool:
    """Return whether every tensor argument is constant and no size is symbolic."""
    return (
        all(v.data is not None for v in op.inputs)
        and all(o is None or is_static(o.shape) for o in op.outputs)
        and not any(isinstance(a, sympy.Expr | torch.SymFloat | torch.SymBool) for a in op.arguments.values())
    )


def _show(argument: Any) -> str:
    if isinstance(argument, TensorVariable):
        return argument.name
    if isinstance(argument, Sequence) and not isinstance(argument, str):
        return "[" + ", ".join(_show(a) for a in argument) + "]"
    return str(argument)
