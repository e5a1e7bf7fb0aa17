"""NNEF as tract reads it: its registries, expressions for dynamic sizes, and what single releases need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.errors import LowerError
from t2n_core.nnef.emitter import FLOAT32, Expected
from t2n_core.nnef.graph import BlockLayout, Operation, Value
from t2n_core.nnef.shapes import broadcast, is_stretched
from t2n_core.nnef.sizes.dims import Dim, Shape, is_static, product
from t2n_core.nnef.sizes.range_names import PROPERTY
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.arithmetic import INT64
from t2n_core.nnef.tract.barriers import fence
from t2n_core.nnef.tract.guard_statement import guard
from t2n_core.nnef.tract.guards import assertions
from t2n_core.nnef.tract.layout import TractLayout
from t2n_core.nnef.tract.optimiser import is_rewritten, is_tiled
from t2n_core.nnef.tract.size_values import SizeValues
from t2n_core.nnef.tract.traits import first_release
from t2n_core.nnef.writing_options import PLAIN, WritingOptions

TRACT_TYPES = {
    "bool": "bool",
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
}
WHOLE = (np.dtype(np.int32), INT64)
"""Integer dtypes that floats are cast to directly; out of their range PyTorch's own results depend on the processor."""


class TractEmitter(TractLayout):
    """NNEF with tract's registries; sizes of dynamic axes are expressions."""

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        super().__init__(spec, name=name, options=options)
        self._size_values = SizeValues(self)
        self.rows_overrun = self.traits.overruns_rows

    def declare_symbols(self, sizes: SizeRange) -> None:
        self.graph.sizes = sizes
        self.graph.extensions += [f"tract_symbol {name}" for name in sizes.names]

    def guard_sizes(self) -> None:
        """A stream has its own sizes, so that an archive for streams says nothing of them."""
        if self.options.streaming:
            return
        sizes = self.graph.sizes
        try:
            self.graph.extensions += assertions(sizes, self.traits)
        except ValueError as wrong:
            raise LowerError(f"{self.spec} cannot check that sizes are in the range {sizes}: {wrong}") from wrong
        if sizes.restricted:
            self.graph.properties[PROPERTY] = str(sizes)
        guard(self)

    def external(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Value:
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

    def type_name(self, dtype: np.dtype[Any]) -> str:
        """tract's word for a dtype: `f32`, `i64`."""
        if dtype.name not in TRACT_TYPES:
            raise self.fail(f"tract has no dtype {dtype}")
        return TRACT_TYPES[dtype.name]

    def need_sizes(self, names: set[str]) -> None:
        self._size_values.need(names)

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        if value.dtype == dtype:
            return value
        if dtype.kind == "b":  # float16 cannot be compared before 0.20
            return self.ne(self.cast(value, FLOAT32) if value.dtype == np.float16 else value, 0)
        if value.dtype.kind == "f" and dtype.kind in "iu" and dtype not in WHOLE:
            value = self.cast(value, INT64)  # numbers out of range wrap around, where the engine would bound them
        return self.tract_core_cast(value, to=self.type_name(dtype), out=Expected(value.shape, dtype))

    def size(self, dim: Dim, dtype: np.dtype[Any]) -> Value:
        return self._size_values.scalar(dim, dtype)

    def positions(self, count: Dim) -> Value:
        return self._size_values.positions(count)

    def matmul(self, x: Value, y: Value, out: Expected | None = None, **transposed: bool) -> Value:
        """Write a product of matrices; operands that the engine would misread are repeated, or put behind a barrier."""
        if self.traits.overreads_batched_constants:
            x, y = self._batched(x, y), self._batched(y, x)
        if self.traits.compares_inner_sizes_as_written:
            x, y = self._spelled_alike(x, y, **transposed)
        if self.traits.rewrites_product_operands:
            rewritten = is_rewritten(x, y), is_rewritten(y, x)
            x, y = (fence(self, v) if broken else v for v, broken in zip((x, y), rewritten, strict=True))
        return self.one("matmul", x, y, out=out, **transposed)

    def stacked_product(self, x: Value, w: Value) -> Value:
        """The product with all leading axes merged, where the engine would compute many products a third as fast."""
        lead = x.shape[:-1]
        if not self.traits.splits_dynamic_products or is_static(lead):
            return super().stacked_product(x, w)
        flat = self.reshape_to(x, (product(lead), x.shape[-1]))
        return self.reshape_to(self.matmul(flat, w, transposeB=True), (*lead, w.shape[0]))

    def conv(self, input: Value, filter: Value, *args: Any, out: Expected | None = None, **attributes: Any) -> Value:
        """The statement of that name; with a window of 1 the engine makes it a product, with the same misreading."""
        if self.traits.rewrites_product_operands and is_tiled(input):
            input = fence(self, input)
        channels = filter.shape[1] * attributes.get("groups", 1)
        input = self._spelled(input, 1, channels)
        return self.respelled(self.one("conv", input, filter, *args, out=out, **attributes))

    def max_pool(self, input: Value, **attributes: Any) -> Value:
        """The statement of that name."""
        return self.respelled(self.one("max_pool", input, **attributes))

    def avg_pool(self, input: Value, **attributes: Any) -> Value:
        """The statement of that name."""
        return self.respelled(self.one("avg_pool", input, **attributes))

    def box(self, input: Value, **attributes: Any) -> Value:
        """The statement of that name."""
        return self.respelled(self.one("box", input, **attributes))

    def tract_core_einsum(self, inputs: Sequence[Value], out: Expected, **attributes: Any) -> Value:
        """Write the statement of that name; operands that the engine would misread are put behind a barrier."""
        operands = [fence(self, v) if is_tiled(v) else v for v in inputs]
        return self.call("tract_core_einsum", operands, outs=[out], **attributes)[0]

    def tract_core_scatter_elements(self, input: Value, indices: Value, updates: Value, **attributes: Any) -> Value:
        """The statement of that name; booleans as numbers, which all versions scatter."""
        if input.dtype.kind != "b":
            return self.one("tract_core_scatter_elements", input, indices, updates, **attributes)
        numbers = [self.cast(v, self.truths) for v in (input, updates)]
        out = self.one("tract_core_scatter_elements", numbers[0], indices, numbers[1], **attributes)
        return self.cast(out, input.dtype)

    def block_layout(self) -> BlockLayout:
        if not self.traits.reads_q40:
            raise self.fail(f"weights in blocks of 4 bits (Q4_0) are read since tract {first_release('reads_q40')}")
        return BlockLayout.HALVES if self.traits.reads_llama_q40 else BlockLayout.NEIGHBOURS

    def _spelled_alike(self, x: Value, y: Value, **transposed: bool) -> tuple[Value, Value]:
        """Return the operands of a product with their inner size spelled alike.

        A size that is more than a symbol is cut to in both: the engine may have worked it out itself, as of a
        convolution.
        """
        of_x = x.rank - (2 if transposed.get("transposeA") else 1)
        of_y = y.rank - (1 if transposed.get("transposeB") else 2)
        size = x.shape[of_x]
        if isinstance(size, int) or size.is_Symbol:
            return x, self._spelled(y, of_y, size)
        x, y = (self.slice(v, axes=[axis], begin=[0], end=[size]) for v, axis in ((x, of_x), (y, of_y)))
        return x, y

    def _spelled(self, value: Value, axis: int, size: Dim) -> Value:
        """Return a value with the size of one axis, which is this one, spelled so."""
        return value if value.shape[axis] == size else self.slice(value, axes=[axis], begin=[0], end=[size])

    def _batched(self, value: Value, other: Value) -> Value:
        if not self._is_known(other) or not is_stretched(value.shape[:-2], other.shape[:-2]):
            return value
        value = self.lift(value, other.rank)
        batch = broadcast(value.shape[:-2], self.lift(other, value.rank).shape[:-2])
        return self.expand(value, (*batch, *value.shape[-2:]))
