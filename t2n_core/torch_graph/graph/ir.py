"""The captured model as a plain graph: tensors and torch operators, arguments bound to the torch schema by name.

>>> model, x = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()), torch.ones(5, 3)
>>> graph = TorchModuleIRGraph(TorchModuleTracer(model, args=(x,)))
>>> for op in graph.op_nodes:
...     print(op.kind, op.module_path, [v.name for v in op.inputs])
aten::linear 0 ['input', '0.weight', '0.bias']
aten::tanh 1 ['linear']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from typing import Any, Protocol

import sympy
import torch

from t2n_core.errors import InputError, Origin
from t2n_core.nnef.options.weight_choice import WeightFormat
from t2n_core.nnef.sizes.dims import Shape, evaluate, is_static, shape_text
from t2n_core.torch_graph.arguments import by_schema, call_overload, overload_for, replace_sizes, sizes_in, sizes_of
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.custom_ops.module_calls import is_module_call
from t2n_core.torch_graph.graph.data import Data, DataNodes


@dataclass(frozen=True, slots=True, eq=False)
class StoredWeight:
    """A weight, rounded to its storage format in the archive."""

    format: WeightFormat
    values: torch.Tensor
    """The values that the engine computes with, in the model's shape and dtype."""
    scales: torch.Tensor | None = None
    """Scales: of int8 in a shape that broadcasts against the values, of q4_0 one for each block."""


@dataclass(frozen=True, slots=True, eq=False)
class FoldedNorm:
    """A filter in a storage format, which the engine multiplies by the scale of a batch norm."""

    filter: TensorVariable
    scale: torch.Tensor
    """The scale of each channel, in a shape that broadcasts against the filter."""


@dataclass(slots=True, eq=False)
class TensorVariable(Data):
    """One tensor. `data` is set for weights and for constants folded at export; other tensors are computed.

    A missing shape or dtype is taken from `data`, or found by the operator's `realise_output_type_and_size`.

    >>> str(TensorVariable("scale", torch.ones(2, 3), None, None))
    'scale: float32[2, 3]'
    """

    data: torch.Tensor | None = field(default=None, repr=False)
    shape: Shape = None  # type: ignore[assignment]  # unknown only before it is realised
    dtype: torch.dtype = None  # type: ignore[assignment]
    quant: InitVar[Mapping[str, Any] | None] = None
    """Always None: a quantised tensor is the result of an operator that has its scale and zero point as arguments."""
    _traced_data: torch.Tensor | None = field(default=None, repr=False)
    """The value in the run of the example, in a graph made from a tracer."""
    label: str = ""
    """Name of a weight in the model's state_dict; empty for other tensors."""
    fake: torch.Tensor | None = field(default=None, repr=False)
    """The fake tensor of capture: shapes and strides for PyTorch's own decompositions."""
    producer: TorchOp | None = field(default=None, repr=False)
    stored: StoredWeight | None = field(default=None, repr=False)
    """The storage format of a weight if it is not the plain one; `data` is then rounded to it."""
    folded_norm: FoldedNorm | None = field(default=None, repr=False)
    """How the engine computes `data`, if a norm was folded into a filter in a storage format."""
    moved: TorchOp | None = field(default=None, repr=False)
    """The operator that computed `data`, if it only moves elements of a weight."""

    def __post_init__(self, quant: Mapping[str, Any] | None) -> None:
        if quant is not None:
            raise InputError(
                f"quant of {self.name}: a tensor has no scale of its own",
                hint="make it the result of a TorchOp such as aten::quantize_per_tensor, which has the scale",
            )
        if self.data is not None:
            self.shape = self.data.shape if self.shape is None else self.shape
            self.dtype = self.data.dtype if self.dtype is None else self.dtype
        self.shape = self.shape if self.shape is None else tuple(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        shape = "[?]" if self.shape is None else shape_text(self.shape)
        return f"{self.name}: {str(self.dtype).removeprefix('torch.')}{shape}"


@dataclass(slots=True, eq=False, init=False)
class TorchOp:
    """One call of a torch operator.

    `inputs` are the arguments in the order of the operator's schema, tensors and other values; the exporter's passes
    give them by name, as `arguments`. Without `op_ref`, `kind` names the operator.

    >>> x = TensorVariable("x", None, (2, 3), torch.float32)
    >>> y = TensorVariable("y", None, x.shape, x.dtype)
    >>> print(TorchOp("aten::softmax.int", "head", [x, 1], [y], "head_softmax"))
    y: float32[2, 3] = aten::softmax.int(self=x, dim=1, dtype=None)
    """

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

    def __init__(
        self,
        kind: str,
        module_path: str = "",
        inputs: Sequence[Any] = (),
        outputs: Sequence[TensorVariable | None] = (),
        scope: str = "",
        op_ref: Any = None,
        call_name: str | None = None,
        *,
        arguments: dict[str, Any] | None = None,
        origin: Origin | None = None,
        returns_list: bool = False,
        refusal: str = "",
    ) -> None:
        if call_name is not None:
            raise InputError(
                f"call_name={call_name!r}: a graph holds operators alone, and calls no methods of modules",
                hint="leave call_name out, and give the operator as kind, such as aten::relu",
            )
        self.kind, self.outputs, self.scope = kind, tuple(outputs), scope
        self.op_ref = overload_for(kind, op_ref)
        self.arguments = by_schema(kind, self.op_ref, inputs) if arguments is None else arguments
        self.origin = Origin(kind, module_path) if origin is None and module_path else origin
        self.returns_list, self.refusal = returns_list, refusal

    @property
    def call_name(self) -> None:
        """Return None: a graph is flat, and none of its operators calls a method of a module."""

    @property
    def module_path(self) -> str:
        return self.origin.module_path if self.origin else ""

    @property
    def inputs(self) -> tuple[TensorVariable, ...]:
        """Return all tensors among the arguments, in order."""
        return tuple(tensors_in(self.arguments.values()))

    def call_op(self, *tensors: torch.Tensor, sizes: Mapping[str, int] | None = None) -> Any:
        """Call the torch operator itself and return its results.

        Args:
            *tensors: Values of `inputs`. In a graph made from a tracer they default to the values in the run of the
                example.
            sizes: The size of each symbol among the arguments, by default read off the tensors.
        """
        values = list(tensors or map(_traced, self.inputs))
        if len(values) != len(self.inputs):
            names = ", ".join(v.name for v in self.inputs)
            raise InputError(f"call_op of {self.kind} takes the tensors {names}, and was given {len(values)} tensors")
        if is_module_call(self.kind):
            return self.arguments["key"].compute(values[: len(self.arguments["inputs"])])[0]
        symbols = sizes_of([v.shape or () for v in self.inputs], values) if sizes is None else sizes
        supply = iter(values)

        def size(extent: sympy.Expr) -> int:
            unknown = sorted({s.name for s in extent.free_symbols} - symbols.keys())
            if unknown:
                raise InputError(f"call_op of {self.kind} needs sizes={{...}} of {', '.join(unknown)}")
            return evaluate(extent, symbols)

        arguments = {
            name: replace_sizes(replace_tensors(argument, lambda _: next(supply)), size)
            for name, argument in self.arguments.items()
        }
        return call_overload(self.op_ref, arguments)

    @property
    def is_realised(self) -> bool:
        """Return whether shape and dtype of all results are known."""
        return all(o is None or (o.shape is not None and o.dtype is not None) for o in self.outputs)

    def realise_output_type_and_size(self) -> tuple[tuple[torch.dtype, Shape] | None, ...]:
        """Return dtype and shape of each result, as capture found them.

        Results without them, of an operator that was made by hand, get them from a call of the operator; results of
        constants are constants themselves. Raises InputError if a size of an input is dynamic.
        """
        if not self.is_realised:
            dynamic = [v.name for v in self.inputs if v.shape is None or not is_static(v.shape)]
            if dynamic:
                raise InputError(
                    f"the size of {', '.join(dynamic)} is dynamic or unknown, and a call would fix it",
                    hint=f"give the results of {self.kind} their shape and dtype",
                )
            values: list[Any] = [v.data if v.data is not None else v._traced_data for v in self.inputs]
            if any(value is None for value in values):
                values = [torch.empty(v.shape, dtype=v.dtype, device="meta") for v in self.inputs]
            returned, is_folded = self.call_op(*values), all(v.data is not None for v in self.inputs)
            results = [returned] if isinstance(returned, torch.Tensor) else returned
            for output, result in zip(self.outputs, results, strict=True):
                if output is not None:
                    output.shape, output.dtype = tuple(result.shape), result.dtype
                    output._traced_data = None if result.is_meta else result
                    output.data = result if is_folded else None
        return tuple(None if o is None else (o.dtype, o.shape) for o in self.outputs)

    def __str__(self) -> str:
        results = ", ".join("_" if o is None else str(o) for o in self.outputs)
        arguments = ", ".join(f"{k}={_show(v)}" for k, v in self.arguments.items())
        where = f"   # {self.origin.source}" if self.origin and self.origin.source else ""
        return f"{results} = {self.kind}({arguments}){where}"


class Tracer(Protocol):
    """The method of a TorchModuleTracer that a graph is made with."""

    def graph_of_example(self) -> TorchModuleIRGraph: ...


@dataclass(slots=True, init=False)
class TorchModuleIRGraph:
    """A captured model: inputs and outputs in the order of the flattened arguments and results.

    Args:
        torch_module_tracer: A TorchModuleTracer, whose model is captured and run on its example. Passes of the exporter
            give the parts of the graph instead, by keyword.
        omit_useless_nodes: Leave out the operators that no output depends on.
        is_root_module: Makes no difference: a graph is flat, and always of the whole model.
    """

    inputs: list[TensorVariable]
    outputs: list[TensorVariable]
    op_nodes: list[TorchOp]
    weights: list[TensorVariable]
    table: SymbolTable = field(repr=False)
    """Size expressions of PyTorch and ours, both ways."""
    storage_notes: tuple[str, ...] = ()
    """A line for each reason why weights are stored plainly although another storage format was chosen."""
    operator_notes: tuple[str, ...] = ()
    """A line for each call that the target's own operator for it cannot compute."""
    assertions: tuple[str, ...] = ()
    """The source lines of the model's assertions on values of tensors, which the graph does not have."""
    open_masks: Mapping[int, float] = field(default_factory=dict)
    """Identities of the attention masks that are proven to have no fully masked row, each with a number that some key
    of every query reaches."""
    _nodes: DataNodes = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        torch_module_tracer: Tracer | None = None,
        omit_useless_nodes: bool = True,
        is_root_module: bool = False,
        **parts: Any,
    ) -> None:
        unknown = parts.keys() - {part.name for part in _PARTS}
        if unknown:
            raise InputError(f"a graph has no part {', '.join(sorted(unknown))}")
        if not parts and not hasattr(torch_module_tracer, "graph_of_example"):
            raise InputError(
                f"a graph is made of a TorchModuleTracer, not of {type(torch_module_tracer).__name__}",
                hint="TorchModuleIRGraph(TorchModuleTracer(module, args=args))",
            )
        source = None if torch_module_tracer is None else torch_module_tracer.graph_of_example()
        self._nodes = DataNodes()
        for part in _PARTS[:-1]:
            default = part.default_factory() if callable(part.default_factory) else part.default
            setattr(self, part.name, parts.get(part.name, default if source is None else getattr(source, part.name)))
        if source is not None and omit_useless_nodes:
            self.op_nodes = self.used_ops()

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
        """Return every tensor: inputs, weights, results of operators, and what was added to this list.

        A tensor that no operator takes or returns is in no archive.
        """
        of_graph = [*self.inputs, *self.weights, *(o for op in self.op_nodes for o in op.outputs if o is not None)]
        self._nodes.update(of_graph)
        return self._nodes

    def bounds(self) -> Iterator[sympy.Expr]:
        """Return all sizes among the operators' arguments: bounds, lengths, shapes."""
        for op in self.op_nodes:
            yield from sizes_in(list(op.arguments.values()))

    def used_ops(self) -> list[TorchOp]:
        """Return the operators that some output depends on, in order. Raises InputError for one without a shape."""
        live_ids = {id(v) for v in self.outputs}
        live_ops: list[TorchOp] = []
        for op in reversed(self.op_nodes):
            if any(o is not None and id(o) in live_ids for o in op.outputs):
                if not op.is_realised:
                    raise InputError(
                        f"the shape or dtype of a result of {op.kind} is not known",
                        hint="give TensorVariable both, or call realise_output_type_and_size() of the TorchOp",
                    )
                live_ops.append(op)
                live_ids.update(id(v) for v in op.inputs)
        return live_ops[::-1]

    def __str__(self) -> str:
        inputs, outputs = (", ".join(map(str, variables)) for variables in (self.inputs, self.outputs))
        ops = "".join(f"  {op}\n" for op in self.op_nodes)
        return f"inputs: {inputs}\n{ops}outputs: {outputs}"


_PARTS = fields(TorchModuleIRGraph)


def _traced(variable: TensorVariable) -> torch.Tensor:
    value = variable.data if variable.data is not None else variable._traced_data
    if value is None:
        raise InputError(
            f"no value of `{variable.name}` is known",
            hint="give call_op the tensors, or make the graph of a tracer: TorchModuleIRGraph(TorchModuleTracer(...))",
        )
    return value.clone()  # an operator may return a view of its argument, or write into it


def tensors_in(arguments: Iterable[Any]) -> Iterator[TensorVariable]:
    """Yield all tensors among arguments, also in nested lists."""
    for argument in arguments:
        if isinstance(argument, TensorVariable):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from tensors_in(argument)


def replace_tensors(argument: Any, swap: Any) -> Any:
    """Return `argument` with every TensorVariable in it passed through `swap`; lists stay lists."""
    if isinstance(argument, TensorVariable):
        return swap(argument)
    if isinstance(argument, list | tuple):
        return [replace_tensors(item, swap) for item in argument]
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
