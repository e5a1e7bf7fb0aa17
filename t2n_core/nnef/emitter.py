"""Emitter: builds an NNEF graph one operation at a time. Rules call target operators as methods and get values back.

    keep = g.gt(x, 0.5)                 every operator of the target's spec table is a method
    y = g.select(keep, x, 0.0)          Python numbers become literals or constants of the right dtype

Arguments are bound to the target version's signature, ranks aligned, shapes inferred; what it lacks raises SpecError.
"""

from __future__ import annotations

import functools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import LowerError, Origin, SpecError
from t2n_core.nnef import shapes
from t2n_core.nnef.arguments import count_axes, key_of, symbols_in
from t2n_core.nnef.dat import ArrayWeight, WeightSource
from t2n_core.nnef.graph import BOOL, FLOAT16, FLOAT32, Fragment, Graph, Operation, Value, before_transposes, values_in
from t2n_core.nnef.lexical import identifier_problem
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.signatures import fragment_signature
from t2n_core.nnef.sizes.dims import Dim, Shape, as_dim, same, shape_text
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Signature, Spec, is_operator, known_operators
from t2n_core.text import suggestion

Scalar: TypeAlias = bool | int | float
Operand: TypeAlias = Value | Scalar
PRODUCTS = frozenset(["matmul", "linear", "conv", "separable_conv", "deconv", "separable_deconv"])
"""Operators that sum products; where float16 accumulates in float32, their operands are cast to float32."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected shape and dtype of one result; for a torch operator those from capture."""

    shape: Shape
    dtype: np.dtype[Any]


@dataclass(slots=True)
class NodeContext:
    """The torch operator being written."""

    name: str
    origin: Origin | None
    outputs: tuple[Expected, ...]
    exact: bool = False
    """True if a decision depends on its results: quotients and means are then rounded once, as PyTorch's are."""


class Emitter(ABC):
    """Builds one graph for one target version; subclasses implement the differences between the dialects of NNEF."""

    truth_dtype: np.dtype[Any] = np.dtype(np.uint8)
    """The dtype that booleans are cast to before they are compared or summed."""
    widest: np.dtype[Any] = np.dtype(np.float64)
    """The widest float that the target computes in."""
    gather_cost: int = 256
    """The time per gathered element, as a multiple of the time per term of a product."""
    has_upsample: bool = False
    """True if a `tract_core_resize` that repeats elements is one copy."""

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        self.spec = spec
        self.options = options
        self.graph = Graph(name=name)
        self.node = NodeContext("graph", None, ())
        self.open_masks: dict[Value, float] = {}  # attention masks without a fully masked row: what each row reaches
        self._names: set[str] = set(spec.names())
        self._counts: dict[str, int] = {}
        """Name -> the last number that was appended to it; all smaller numbers are in use."""
        self._written: dict[Any, tuple[Value, ...]] = {}
        self._constants: dict[bytes, Value] = {}
        self._variables: dict[str, Value] = {}

    def begin(self, name: str, origin: Origin | None, outputs: Iterable[Expected], *, exact: bool = False) -> None:
        """Begin a torch operator: all operations written from here on belong to it."""
        self.node = NodeContext(name, origin, tuple(outputs), exact)

    @property
    def output(self) -> Expected:
        """The captured first result of the torch operator being written."""
        return self.node.outputs[0]

    def unique(self, stem: str) -> str:
        """Return an identifier that is neither in use nor the name of an operator."""
        base = re.sub(r"\W", "_", stem)
        if identifier_problem(base):
            base = f"v_{base}"
        name, count = base, self._counts.get(base, 0)
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._counts[base] = count
        self._names.add(name)
        return name

    def rename(self, value: Value, name: str) -> None:
        """Give a value that was just written the name that users know."""
        if value.name != name:
            value.name = self.unique(name)

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve names for inputs, outputs and symbols."""
        self._names.update(names)

    def __getattr__(self, name: str) -> Callable[..., Value]:
        """Return the writer of an operator. Raises AttributeError for a name that is not an operator of any target."""
        operator = name.rstrip("_")  # `and_`, `or_`, `not_`: Python reserves these names
        if name.startswith("_") or not (operator in self.graph.fragments or is_operator(operator)):
            message = f"{type(self).__name__} has no attribute or operator `{name}`"
            names = [] if name.startswith("_") else [*dir(type(self)), *known_operators(self.spec.target)]
            near = suggestion(operator, names, otherwise="", most=3)
            raise AttributeError(f"{message}; {near}" if near else message)
        return functools.partial(self.one, operator)

    def one(self, operator: str, *args: Any, out: Expected | None = None, **attributes: Any) -> Value:
        """Write one operation and return its first result; `out` is its shape where it cannot be inferred."""
        return self.call(operator, *args, outs=None if out is None else [out], **attributes)[0]

    def call(
        self, operator: str, *args: Any, outs: Sequence[Expected] | None = None, **attributes: Any
    ) -> tuple[Value, ...]:
        """Write one operation and return all its results; `outs` are their shapes where they cannot be inferred.

        `operator` is an operator of the target, or a fragment of the graph, which needs `outs`.
        """
        is_wide = operator in PRODUCTS and self.accumulator(FLOAT16) == FLOAT32
        if is_wide and any(value.dtype == FLOAT16 for value in values_in([*args, *attributes.values()])):
            self.graph.effects.add("linear_accumulation_in_f32")
            return self._call_in_f32(operator, args, outs, attributes)
        try:
            signature = self._signature(operator)
            if signature.broken:
                raise SpecError(f"`{operator}` must not be written for {self.spec}: {signature.broken}")
            arguments = signature.bind(args, attributes)
        except SpecError as wrong:
            raise self._with_origin(wrong) from wrong
        arguments = self._operands(signature, arguments)
        try:
            if operator not in self.graph.fragments:
                arguments = count_axes(operator, arguments)
            expected = [Expected(*shapes.infer(operator, arguments))] if outs is None else outs
            results = [Expected(tuple(as_dim(d) for d in o.shape), o.dtype) for o in expected]
        except LowerError as wrong:
            raise self._with_origin(wrong) from wrong
        return self.write(operator, arguments, results)

    def _signature(self, operator: str) -> Signature:
        fragment = self.graph.fragments.get(operator)
        return self.spec.operator(operator) if fragment is None else fragment_signature(operator, fragment.text)

    def _call_in_f32(
        self, operator: str, args: Sequence[Any], outs: Sequence[Expected] | None, attributes: dict[str, Any]
    ) -> tuple[Value, ...]:
        """Write an operation on float16 values in float32, and round its results back once."""

        def wide(argument: Any) -> Any:
            is_half = isinstance(argument, Value) and argument.dtype == FLOAT16
            return self.cast(argument, FLOAT32) if is_half else argument

        wider = None if outs is None else [Expected(o.shape, FLOAT32 if o.dtype == FLOAT16 else o.dtype) for o in outs]
        results = self.call(operator, *map(wide, args), outs=wider, **{n: wide(a) for n, a in attributes.items()})
        return tuple(self.cast(value, FLOAT16) for value in results)

    def write(
        self, operator: str, arguments: dict[str, Any], results: Sequence[Expected], dtype: str = ""
    ) -> tuple[Value, ...]:
        """Append an operation whose arguments are complete, unless there is an equal one, and return its results.

        Some engines merge equal operations themselves, and from 0.21 on fail to do so for integers.
        """
        self._need_sizes(arguments)
        key = (operator, dtype, tuple((r.shape, r.dtype) for r in results), key_of(arguments))
        if key in self._written:
            return self._written[key]
        values = tuple(Value(self.unique(f"{self.node.name}_{operator}"), r.dtype, r.shape) for r in results)
        operation = Operation(operator, arguments, values, self.node.origin, dtype)
        for value in values:
            value.producer = operation
        self.graph.operations.append(operation)
        self._written[key] = values
        return values

    def _with_origin(self, wrong: LowerError | SpecError) -> LowerError | SpecError:
        return type(wrong)(
            wrong.message, origin=wrong.origin or self.node.origin, target=str(self.spec), hint=wrong.hint
        )

    def fail(self, message: str, hint: str | None = None) -> LowerError:
        """Return the error to raise when this operator cannot be written with these arguments."""
        return LowerError(message, origin=self.node.origin, target=str(self.spec), hint=hint)

    def _operands(self, signature: Signature, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with Python numbers as literals or constants, and ranks aligned for broadcasting."""
        tensors = [p.name for p in signature.parameters if p.is_tensor and p.name in arguments]
        values = [v for n in tensors if isinstance(v := arguments[n], Value)]
        if not values:
            return arguments
        rank = max(v.rank for v in values)
        align = signature.name in shapes.BROADCASTING
        dtype = next((v.dtype for v in values if v.dtype != BOOL), values[0].dtype)
        for name in tensors:
            argument = arguments[name]
            if isinstance(argument, bool | int | float):
                if dtype == BOOL and not isinstance(argument, bool):
                    raise self.fail(
                        f"`{signature.name}` of a condition and Python numbers only: their dtype is unknown"
                    )
                arguments[name] = self.literal(argument, dtype, rank if align else 0)
            elif align and isinstance(argument, Value) and argument.rank < rank:
                arguments[name] = self.lift(argument, rank)
        return arguments

    def literal(self, number: Scalar, dtype: np.dtype[Any], rank: int = 0) -> Value | float:
        """Return a float literal where that is exact for the dtype, otherwise a constant with `rank` axes of size 1."""
        with np.errstate(over="ignore"):
            if dtype == FLOAT32 and math.isfinite(np.float32(number)):
                return float(np.float32(number))
            return self.constant(np.full((1,) * rank, number, dtype=dtype))

    def _need_sizes(self, arguments: dict[str, Any]) -> None:
        symbols = symbols_in(arguments.values())
        if symbols:
            self.need_sizes(symbols)

    @abstractmethod
    def need_sizes(self, names: set[str]) -> None:
        """Make the sizes of these symbols readable by the operations that follow."""

    @abstractmethod
    def declare_symbols(self, sizes: SizeRange) -> None:
        """Declare the symbols of dynamic axes, and the range of sizes that the graph is valid for."""

    def state_index(self, value: Value, size: Dim) -> None:  # noqa: B027
        """Record that the elements of `value` are indices into an axis of that size, possibly counted from its end."""

    def rewrite_graph(self) -> None:  # noqa: B027
        """Rewrite the finished graph: what depends on all readers of a value."""

    def guard_sizes(self) -> None:  # noqa: B027
        """Make the finished graph fail for sizes out of the range, unless a declaration does that."""

    @abstractmethod
    def external(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Value:
        """Declare the next input of the graph, and return its value."""

    @abstractmethod
    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """Return `value` in another dtype, rounded as by PyTorch; `value` itself if it has that dtype."""

    @abstractmethod
    def size(self, dim: Dim, dtype: np.dtype[Any]) -> Value:
        """Return a size as a tensor of rank 0."""

    @abstractmethod
    def positions(self, count: Dim) -> Value:
        """Return 0, 1, …, count - 1 as int64."""

    @abstractmethod
    def expand(self, value: Value, shape: Shape) -> Value:
        """Return `value` with its axes of size 1 repeated to `shape`, which has the same rank."""

    @abstractmethod
    def pick(self, value: Value, indices: Value, axis: int) -> Value:
        """Return `value` at these non-negative indices along one axis; the axes of the indices replace it."""

    def is_streamed(self, size: Dim) -> bool:
        """Return whether an axis of this size is the time axis of a stream."""
        return False

    def stacked_product(self, x: Value, w: Value) -> Value:
        """Return the product [..., O] of `x` [..., I] and the rows of `w` [O, I]."""
        return self.matmul(x, self.lift(w, x.rank), transposeB=True)

    def quotient(self, x: Operand, y: Operand) -> Value:
        """Return `x / y` of floats, rounded once as IEEE 754 has it; for a rule with a decision that depends on it."""
        return self.div(x, y)

    def closing_sigmoid(self, sigmoid: Value, x: Value) -> Value:
        """Return sigmoid(x) of float32, with the zeros that it has far below 0; `sigmoid` is the operator's result."""
        return sigmoid

    def sums_rows(self, lead: Shape, row: Shape) -> bool:
        """Return whether the axes of `row`, which come after `lead`, should be merged before a sum over them."""
        return False

    def mean_of(self, value: Value, axes: Sequence[int]) -> Value:
        """Return the mean over axes, which are kept with size 1, by the fastest lowering."""
        return self.mean_reduce(value, axes=list(axes))

    def norm_of(self, value: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value]:
        """Return `value / sqrt(mean(value^2) + eps)`, with the mean over axes, and the reciprocal of that root."""
        inverse = self.rsqrt(self.add(self.mean_of(self.mul(value, value), axes), eps))
        return self.mul(value, inverse), inverse

    def accumulator(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype in which products of `dtype` are computed."""
        return FLOAT32 if dtype == FLOAT16 and self.options.accumulates_in_f32 else dtype

    def variable(self, label: str, weight: WeightSource, *, format: str = "") -> Value:
        """Return the variable of a weight; the same label with the same storage format returns the same value."""
        existing = self._variables.get(label + format)
        if existing is not None and tuple(existing.shape) != tuple(weight.shape):
            raise self.fail(f"two variables have the label {label}")
        if existing is not None:
            return existing
        value = Value(self.unique(label), weight.dtype, weight.shape, weight=weight)
        arguments = {"shape": list(weight.shape), "label": label}
        operation = Operation("variable", arguments, (value,), None, self.variable_dtype(weight.dtype))
        value.producer = operation
        self.graph.operations.append(operation)
        self._variables[label + format] = value
        return value

    def variable_dtype(self, dtype: np.dtype[Any]) -> str:
        """Return the type that is written in angle brackets after an operator, as in `variable<scalar>`."""
        return {"f": "scalar", "b": "logical", "i": "integer", "u": "integer"}[dtype.kind]

    def constant(self, array: NDArray[Any] | Scalar, dtype: np.dtype[Any] | None = None) -> Value:
        """Return the variable of a tensor that is known at export. Equal ones share one variable."""
        weight = ArrayWeight(np.asarray(array, dtype=dtype))
        key = weight.digest()
        if key not in self._constants:
            self._constants[key] = self.variable(f"constant_{len(self._constants)}", weight)
        return self._constants[key]

    def fragment(self, fragment: Fragment) -> str:
        """Add a fragment unless the graph has it, and return its name."""
        existing = self.graph.fragments.setdefault(fragment.name, fragment)
        if existing.text != fragment.text:
            raise self.fail(f"two fragments have the name {fragment.name}")
        return fragment.name

    def repeats(self, value: Value, shape: Shape) -> list[Dim]:
        """Return how often each axis of `value` is repeated for `shape`.

        Raises LowerError for an axis of more than one element that is not known to have that size.
        """
        for have, want in zip(value.shape, shape, strict=True):
            if not same(have, want) and not same(have, 1):
                raise self.fail(f"{shape_text(value.shape)} does not broadcast to {shape_text(shape)}")
        return [1 if same(have, want) else want for have, want in zip(value.shape, shape, strict=True)]

    def lift(self, value: Value, rank: int) -> Value:
        """Return a value with leading axes of size 1, as PyTorch's broadcasting adds them.

        If `value` is a squeeze of exactly these axes, return the input of the squeeze: of two operations that differ
        only by such a pair, 0.21.6 and 0.21.7 lose one.
        """
        missing = rank - value.rank
        if missing <= 0:
            return value
        axes, last = list(range(missing)), value.producer
        if last is not None and last.name == "squeeze" and list(last.arguments["axes"]) == axes:
            return next(last.inputs())
        return self.unsqueeze(value, axes=axes)

    def copy_of(self, value: Value) -> Value:
        """Return a copy of a value under another name, for a second output."""
        self._written.clear()
        return self.squeeze(self.unsqueeze(value, axes=[0]), axes=[0])

    def reshape_to(self, value: Value, shape: Sequence[Dim]) -> Value:
        """Return the same elements in another shape, without intermediate reshapes that no other operation reads."""
        target_shape = tuple(as_dim(d) for d in shape)
        while value.producer is not None and value.producer.name == "reshape":
            value = next(value.producer.inputs())
        if len(target_shape) == value.rank and all(same(a, b) for a, b in zip(target_shape, value.shape, strict=True)):
            return value
        if not target_shape:  # `reshape` to rank 0 aborts some versions; squeezing is correct in all
            return self.squeeze(value, axes=list(range(value.rank)))
        return self.reshape(value, shape=list(target_shape))

    def squeeze_axes(self, value: Value, axes: Sequence[int]) -> Value:
        return self.squeeze(value, axes=sorted(axes)) if axes else value

    def permute(self, value: Value, axes: Sequence[int]) -> Value:
        value, order = before_transposes(value, count_axes("transpose", {"axes": axes}, [value])["axes"])
        return value if order == list(range(value.rank)) else self.transpose(value, axes=order)

    def take(self, value: Value, axis: int, begin: Dim, end: Dim) -> Value:
        """Return `value[begin:end]` along one axis; bounds are non-negative and within the axis, as required."""
        if isinstance(begin, int) and begin == 0 and same(end, value.shape[axis]):
            return value
        return self.slice(value, axes=[axis], begin=[begin], end=[end])

    def fill(self, number: Scalar, shape: Shape, dtype: np.dtype[Any]) -> Value:
        """Return a tensor filled with a scalar; sizes may be symbolic."""
        return self.expand(self.constant(np.full((1,) * len(shape), number, dtype=dtype)), shape)
