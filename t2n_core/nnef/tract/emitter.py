"""Emitter of tract's NNEF: its registries, expressions for dynamic sizes, and what single releases need.

Three tables decide the lowering of an operation. `traits` names the behaviours of the release. `forms` has a function
for each operator that is not always written as the plain operation. `quirks` are checked for every operation, and
repair operations that the release computes wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import LowerError
from t2n_core.nnef.arguments import count_axes
from t2n_core.nnef.emitter import Expected, Operand, Scalar
from t2n_core.nnef.graph import FLOAT16, FLOAT32, INT64, Operation, Value
from t2n_core.nnef.loop_emitter import Step
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.sizes.dims import Dim, Shape, is_static, shape_text
from t2n_core.nnef.sizes.range_names import PROPERTY
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract import loops
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.constants import SCANS_REPACK, widen
from t2n_core.nnef.tract.forms import elementwise, products, quotients, reshapes, slices, sums, windows
from t2n_core.nnef.tract.outer_slices import separate_outer_slices
from t2n_core.nnef.tract.quirks.quirk import OperationView
from t2n_core.nnef.tract.quirks.table import apply_quirks
from t2n_core.nnef.tract.selections import gather_selections
from t2n_core.nnef.tract.shared_operands import expand_shared_operands
from t2n_core.nnef.tract.sizes.arithmetic import argument_for
from t2n_core.nnef.tract.sizes.guard_statement import guard, is_by_statement
from t2n_core.nnef.tract.sizes.guards import assertions
from t2n_core.nnef.tract.sizes.streams import are_plain, in_stream
from t2n_core.nnef.tract.sizes.unsolved import name_unsolved
from t2n_core.nnef.tract.sizes.values import SizeValues
from t2n_core.nnef.tract.unstreamable import refuse_unstreamable

WHOLE = (np.dtype(np.int32), INT64)
"""Integer dtypes that floats are cast to directly; out of their range PyTorch's own results depend on the processor."""
FORMS: dict[str, Callable[..., Value]] = {
    **elementwise.FORMS,
    **sums.FORMS,
    **windows.FORMS,
    **slices.FORMS,
    **reshapes.FORMS,
    **products.FORMS,
}
"""Operator -> its lowering, with the emitter as first argument."""


class TractEmitter(TractBuilder):
    """NNEF with tract's registries; dynamic sizes are expressions."""

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        super().__init__(spec, name=name, options=options)
        self.repacks_computed = spec.version in SCANS_REPACK
        self._size_values = SizeValues(self)
        self.gather_cost = 32 if self.traits.copies_gathers else self.gather_cost
        self.has_upsample = self.traits.has_upsample and not options.streaming

    def __getattr__(self, name: str) -> Callable[..., Value]:
        form = FORMS.get(name.rstrip("_"))
        if form is None:
            return super().__getattr__(name)
        return lambda *args, **attributes: form(self, *args, **count_axes(name, attributes, args))

    def write(
        self, operator: str, arguments: dict[str, Any], results: Sequence[Expected], dtype: str = ""
    ) -> tuple[Value, ...]:
        """Append an operation, with its sizes written so that the engine evaluates them correctly, after the quirks."""
        if self.streamed_symbol is not None:
            for name, argument in arguments.items():
                arguments[name], self.graph.sizes = in_stream(argument, self.graph.sizes, self.streamed_symbol)
        try:
            arguments = {name: argument_for(self.traits, argument) for name, argument in arguments.items()}
        except ValueError as wrong:
            raise self.fail(f"`{operator}`: {wrong}") from wrong
        operation = apply_quirks(self, OperationView(operator, arguments, results, self.facts))
        return super().write(operation.operator, dict(operation.arguments), operation.results, dtype)

    def constant(self, array: NDArray[Any] | Scalar, dtype: np.dtype[Any] | None = None) -> Value:
        """Return a constant; a single NaN as an element of many where the engine refuses it alone.

        Sixteen are the fewest that the engine does not slice when it loads the graph.
        """
        values = np.asarray(array, dtype=dtype)
        alone = values.size == 1 and values.dtype.kind == "f" and bool(np.isnan(values).all())
        if not alone or not self.traits.refuses_nan_constants:
            return super().constant(values)
        several = super().constant(np.full(16, np.nan, values.dtype))
        return self.reshape_to(self.slice(several, axes=[0], begin=[0], end=[1]), values.shape)

    def declare_symbols(self, sizes: SizeRange) -> None:
        streamed = self.options.streamed_symbol
        if streamed is not None and streamed not in sizes.names:
            names = ", ".join(sizes.names) or "none"
            raise LowerError(f"pulse= names the dynamic axis {streamed}; this model has {names}", target=str(self.spec))
        self.graph.sizes = sizes
        self.graph.extensions += [f"tract_symbol {name}" for name in sizes.names]

    def rewrite_graph(self) -> None:
        refuse_unstreamable(self)
        gather_selections(self)
        expand_shared_operands(self)
        separate_outer_slices(self)

    def guard_sizes(self) -> None:
        """State the range of sizes; an archive for streams states none, since a stream has its own sizes."""
        if self.options.streaming:
            return
        sizes, equations = self.graph.sizes, name_unsolved(self)
        by_statement = is_by_statement(self, equations)
        try:
            self.graph.extensions += assertions(sizes, self.traits, equations, by_statement)
        except ValueError as wrong:
            raise LowerError(f"{self.spec} cannot check that sizes are in the range {sizes}: {wrong}") from wrong
        if sizes.restricted:
            self.graph.properties[PROPERTY] = str(sizes)
        guard(self, by_statement)

    def external(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Value:
        if self.streamed_symbol is not None and not are_plain(shape, self.streamed_symbol):
            raise self.fail(
                f"{name} has the shape {shape_text(shape)}: pulse= needs an axis whose size is one symbol",
                hint="declare the axis as a plain symbol, and give a pulse that is a multiple",
            )
        arguments: dict[str, Any] = {"shape": list(shape)}
        operator = "external"
        if dtype != FLOAT32:
            operator = "tract_core_external"
            arguments["datum_type"] = self.type_name(dtype)
        value = Value(name, dtype, shape)
        value.producer = Operation(operator, arguments, (value,))
        self.graph.operations.append(value.producer)
        self.graph.inputs.append(value)
        return value

    def need_sizes(self, names: set[str]) -> None:
        self._size_values.make_readable(names)

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        if value.dtype == dtype:
            return value
        if dtype.kind == "b":  # float16 cannot be compared before 0.20
            return self.ne(self.cast(value, FLOAT32) if value.dtype == np.float16 else value, 0)
        if value.weight is not None and value.dtype.itemsize < 4 and dtype == FLOAT32:
            return widen(self, value)
        if value.dtype.kind == "f" and dtype.kind in "iu" and dtype not in WHOLE:
            value = self.cast(value, INT64)  # values out of range wrap around, where the engine would clamp them
        return self.tract_core_cast(value, to=self.type_name(dtype), out=Expected(value.shape, dtype))

    def size(self, dim: Dim, dtype: np.dtype[Any]) -> Value:
        return self._size_values.scalar(dim, dtype)

    def positions(self, count: Dim) -> Value:
        return self._size_values.positions(count)

    def expand(self, value: Value, shape: Shape) -> Value:
        repeats = self.repeats(value, shape)
        if all(isinstance(r, int) and r == 1 for r in repeats):
            return value
        return self.tile(value, repeats=repeats)

    def pick(self, value: Value, indices: Value, axis: int) -> Value:
        return slices.pick(self, value, indices, count_axes("gather", {"axis": axis}, [value])["axis"])

    def stacked_product(self, x: Value, w: Value) -> Value:
        is_split = self.traits.splits_dynamic_products and not is_static(x.shape[:-1])
        if not is_split or any(map(self.is_streamed, x.shape)):  # a stream cannot merge its steps
            return super().stacked_product(x, w)
        return windows.product_of_merged(self, x, w)

    def quotient(self, x: Operand, y: Operand) -> Value:
        return quotients.exact_quotient(self, x, y)

    def closing_sigmoid(self, sigmoid: Value, x: Value) -> Value:
        return elementwise.closing_sigmoid(self, sigmoid, x)

    def loop(
        self,
        step: Step,
        scanned: Sequence[Value],
        states: Sequence[Value],
        tensors: Sequence[Value] = (),
        *,
        backwards: bool = False,
    ) -> tuple[list[Value], list[Value]]:
        return loops.write_loop(self, step, scanned, states, tensors, backwards=backwards)

    def scan(self, count: Dim, *, outs: Sequence[Expected], **arguments: Any) -> tuple[Value, ...]:
        return loops.write_scan(self, count, outs=outs, **arguments)

    def sums_rows(self, lead: Shape, row: Shape) -> bool:
        return sums.sums_rows(self, lead, row)

    def mean_of(self, value: Value, axes: Sequence[int]) -> Value:
        if not self.traits.sums_axes_at_once or list(axes) != [value.rank - 1]:
            return super().mean_of(value, axes)
        return sums.mean_of_last(self, value)

    def norm_of(self, value: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value]:
        if not self.traits.fuses_norms:
            return super().norm_of(value, axes, eps)
        # of squares over the last axis alone, which the engine recognises
        inverse = self.rsqrt(self.add(self.mean_reduce(self.mul(value, value), axes=list(axes)), eps))
        return sums.norm(self, value, axes, eps, inverse), inverse

    def accumulator(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return float32 for float16 even if the engine itself would accumulate in float16."""
        return FLOAT32 if dtype == FLOAT16 and self.traits.sums_float16_in_float16 else super().accumulator(dtype)
