"""NNEF as tract reads it: its registries, expressions for dynamic sizes, and what single releases need."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from t2n_core.errors import LowerError
from t2n_core.nnef.dims import Dim, Shape, as_dim, floor_div, is_static, product, same
from t2n_core.nnef.emitter import FLOAT16, FLOAT32, Emitter, Expected, Operand
from t2n_core.nnef.graph import BlockLayout, Operation, Value, is_known
from t2n_core.nnef.reshapes import ReshapePart, factors, joined, reshape_parts
from t2n_core.nnef.shapes import broadcast, infer, is_mixed, is_stretched
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract_rewriting import (
    IN_PLACE,
    MOVED_RESHAPES,
    has_lone_axis,
    is_misread,
    is_rewritten,
    is_smaller,
    is_tiled,
    sum_fits,
)
from t2n_core.nnef.tract_sizes import (
    arguments_without_differences,
    is_quotient,
    is_seen_within,
    negated,
    without_differences,
)
from t2n_core.nnef.tract_versions import (
    BATCHED_CONSTANTS,
    BLOCKS,
    BLOCKS_IN_HALVES,
    BOUNDED_SIZES,
    CLAMPED_ENDS,
    FAST_NORMS,
    LONE_AXES,
    MIXED_PRODUCT,
    PRODUCTS_APART,
    REWRITTEN_PRODUCTS,
    ROWS_OVERRUN,
    SIZES_AS_BOUNDS,
    SMALL_FIRST,
    SUBTRACTED_QUOTIENTS,
    SUMS_IN_SINGLE,
    SUMS_OF_AXES,
    SWAPPED_SUB,
)
from t2n_core.nnef.writing_options import PLAIN, WritingOptions

TRACT_TYPES = {
    "bool": "bool",
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
}
FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)
COMMUTATIVE = frozenset("add mul max min".split())
JOINED = {"Max": "max", "Min": "min", "Add": "add", "Mul": "mul"}


class TractEmitter(Emitter):
    """NNEF with tract's registries; sizes of dynamic axes are expressions."""

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        super().__init__(spec, name=name, options=options)
        self._sizes: set[str] = set()
        self.rows_overrun = spec.version < ROWS_OVERRUN

    def declare_symbols(self, names: Sequence[str]) -> None:
        """Sizes are at least 1, as capture takes them to be: with that the engine proves that operators made for many
        elements fit, which it does not use for a tensor that might be empty."""
        self.graph.extensions += [f"tract_symbol {name}" for name in names]
        if self.spec.version >= BOUNDED_SIZES and not self.options.streaming:
            self.graph.extensions += [f"tract_assert {name} >= 1" for name in names]

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

    def write(
        self, operator: str, arguments: dict[str, Any], results: Sequence[Expected], dtype: str = ""
    ) -> tuple[Value, ...]:
        """The statement, its operands in another order or in new memory where the engine would misread the first.

        Sizes are in a form that the engine works out right.
        """
        if self.spec.version >= SUBTRACTED_QUOTIENTS:
            arguments = {name: arguments_without_differences(argument) for name, argument in arguments.items()}
        first, end = LONE_AXES
        if operator in IN_PLACE and first <= self.spec.version < end:
            arguments = self._renewed(operator, arguments)
        return super().write(operator, arguments, results, dtype)

    def _renewed(self, operator: str, arguments: dict[str, Any]) -> dict[str, Any]:
        (of_x, x), (of_y, y), *bounds = arguments.items()
        if isinstance(y, Value) and (not isinstance(x, Value) or is_stretched(x.shape, y.shape)):
            (of_x, x), (of_y, y) = (of_y, y), (of_x, x)  # as the engine does
        operands = [y, *(bound for _, bound in bounds)]
        is_square = operator == "mul" and x is y  # which the engine has an operator for
        if is_square or not isinstance(x, Value) or not any(is_misread(x, operand) for operand in operands):
            return arguments
        turns = operator in COMMUTATIVE and isinstance(y, Value) and not is_stretched(y.shape, x.shape)
        if turns and not has_lone_axis(y):
            return {**arguments, of_x: y, of_y: x}
        return {**arguments, of_x: self.cast(self.cast(x, FLOAT64), x.dtype)}

    def need_sizes(self, names: set[str]) -> None:
        """Sizes are read off the first input that has the symbol alone as an extent.

        The value takes the symbol's own name: old versions know symbols only inside `external`, all know a value.
        """
        for name in sorted(names - self._sizes):
            self._sizes.add(name)
            source, axis = self._bearer(name)
            node, self.node = self.node, type(self.node)(f"size_of_{name}", None, ())
            rank = source.rank
            sizes = self.tract_core_shape_of(source, out=Expected((rank,), np.dtype(np.int64)))
            one = self.slice(sizes, axes=[0], begin=[axis], end=[axis + 1])
            size = self.squeeze(one, axes=[0])
            size.name = name
            self.node = node

    def _bearer(self, name: str) -> tuple[Value, int]:
        for value in self.graph.inputs:
            for axis, extent in enumerate(value.shape):
                if not isinstance(extent, int) and extent.is_Symbol and extent.name == name:
                    return value, axis
        raise LowerError(f"no input has the size {name} as an extent", origin=self.node.origin)

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        if value.dtype == dtype:
            return value
        if dtype.kind == "b":  # float16 cannot be compared before 0.20
            return self.ne(self.cast(value, FLOAT32) if value.dtype == np.float16 else value, 0)
        return self.tract_core_cast(value, to=self.type_name(dtype), out=Expected(value.shape, dtype))

    def size(self, dim: Dim, dtype: np.dtype[Any]) -> Value:
        if isinstance(dim, int):
            return self.constant(np.asarray(dim, dtype=dtype))
        if dim.has(sympy.Max, sympy.Min) and type(dim).__name__ in JOINED:  # sizes have no such operators, numbers do
            parts = [self.size(as_dim(part), dtype) for part in dim.args]
            return functools.reduce(lambda a, b: self.one(JOINED[type(dim).__name__], a, b), parts)
        results = [Expected((), dtype)]
        return self.write("tract_core_cast", {"input": negated(dim), "to": self.type_name(dtype)}, results)[0]

    def expand(self, value: Value, shape: Shape) -> Value:
        repeats = [1 if same(have, want) else want for have, want in zip(value.shape, shape, strict=True)]
        if all(isinstance(r, int) and r == 1 for r in repeats):
            return value
        return self.tile(value, repeats=repeats)

    def pick(self, value: Value, indices: Value, axis: int) -> Value:
        """0.19 reads a matrix of indices wrongly on all axes but the first, and fails on a list of one known index."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        if indices.weight is not None and indices.rank and product(indices.shape) == 1:
            place = int(np.frombuffer(b"".join(indices.weight.chunks()), indices.dtype)[0])
            return self.reshape_to(self.take(value, axis, place, place + 1), shape)
        if indices.rank > 1 and axis > 0:
            flat = self.pick(value, self.reshape_to(indices, [product(indices.shape)]), axis)
            return self.reshape_to(flat, shape)
        return self.tract_core_gather(value, indices, axis=axis)

    def slice(
        self,
        value: Value,
        *,
        axes: Sequence[int],
        begin: Sequence[Dim],
        end: Sequence[Dim],
        stride: Sequence[int] = (),
        out: Expected | None = None,
    ) -> Value:
        """The statement of that name; an axis with a size among its bounds is picked where it cannot take that."""
        steps = list(stride) or [1] * len(axes)
        bounds = list(zip(axes, begin, end, steps, strict=True))
        for bound in list(bounds):
            axis, first, last, _ = bound
            if self._is_misread(value.shape[axis], first, last):
                known = is_static((first, last))
                value = self._pick_known(value, *bound) if known else self._pick_range(value, *bound)
                bounds.remove(bound)
        if not bounds:
            return value
        free = [bound for bound in bounds if self.spec.version < SIZES_AS_BOUNDS and not is_static(bound[1:3])]
        if free:
            for axis, first, last, step in free:
                value = self._pick_range(value, axis, first, last, step)
            bounds = [bound for bound in bounds if bound not in free]
            if not bounds:
                return value
        for axis, first, last, step in bounds:
            if step != 1 and is_static((first, last)):
                value = self._every_nth(value, axis, int(first), int(last), step)
        bounds = [bound for bound in bounds if bound[3] == 1 or not is_static(bound[1:3])]
        if not bounds:
            return value
        axes, begin, end, steps = (list(of) for of in zip(*bounds, strict=True))
        more = {"stride": steps} if any(step != 1 for step in steps) else {}
        outs = None if out is None else [out]
        return self.call("slice", value, axes=axes, begin=begin, end=end, outs=outs, **more)[0]

    def _is_misread(self, size: Dim, begin: Dim, end: Dim) -> bool:
        """True where the engine would give a `slice` with these bounds another extent than it has."""
        if is_static((size, begin, end)):
            return False
        length = as_dim(end - begin)
        if self.spec.version >= SUBTRACTED_QUOTIENTS and without_differences(length) != length:
            return True
        first_clamping, first_right = CLAMPED_ENDS
        if not first_clamping <= self.spec.version < first_right:
            return False
        if is_static((begin, end)):
            return True
        if self.options.streaming:  # nothing but a `slice` can be streamed
            return is_quotient(begin) or is_quotient(end)
        return not (is_seen_within(begin, size) and is_seen_within(end, size))

    def _every_nth(self, value: Value, axis: int, begin: int, end: int, step: int) -> Value:
        """The engine moves a `slice` with a stride through the `reshape` that made its axis, and fails.

        So the axis is cut into rows of `step` elements, of which the first are taken.
        """
        count = -(-(end - begin) // step)
        size = value.shape[axis]
        if not isinstance(size, int) or begin + count * step > size:
            indices = self.constant(np.arange(begin, end, step, dtype=np.int64))
            return self.pick(value, indices, axis=axis)
        before, after = value.shape[:axis], value.shape[axis + 1 :]
        rows = self.reshape_to(self.take(value, axis, begin, begin + count * step), [*before, count, step, *after])
        return self.reshape_to(self.take(rows, axis + 1, 0, 1), [*before, count, *after])

    def add(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """`x + y`, in the order that is fast."""
        return self.one("add", *self._small_first(x, y), out=out)

    def max(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """The larger one, in the order that is fast."""
        return self.one("max", *self._small_first(x, y), out=out)

    def min(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """The smaller one, in the order that is fast."""
        return self.one("min", *self._small_first(x, y), out=out)

    def relu(self, x: Value) -> Value:
        """The statement of that name, or what the engine makes of it in the order that is fast."""
        fast = self.spec.version < SMALL_FIRST and x.dtype == FLOAT32
        return self.max(x, 0.0) if fast else self.one("relu", x)

    def _small_first(self, x: Operand, y: Operand) -> tuple[Operand, Operand]:
        """Operands of which either may be the first."""
        return (y, x) if self.spec.version < SMALL_FIRST and is_smaller(y, x) else (x, y)

    def sub(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """`x - y`; as `-y + x` where the engine would swap them, or where that is fast."""
        if self.spec.version < SMALL_FIRST and is_smaller(y, x):
            return self.one("add", self.one("neg", y) if isinstance(y, Value) else -y, x, out=out)
        first, end = SWAPPED_SUB
        swapping = first <= self.spec.version < end
        if (
            swapping
            and isinstance(y, Value)
            and y.dtype.kind in "fi"
            and is_stretched(x.shape if isinstance(x, Value) else (), y.shape)
        ):
            return self.one("add", self.one("neg", y), x, out=out)
        return self.one("sub", x, y, out=out)

    def mul(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """`x * y`; a second operand that the engine would misread is stretched before."""
        x, y = self._small_first(x, y)
        return self.one("mul", x, self._widened(x, y), out=out)

    def div(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """`x / y`; a second operand that the engine would misread is stretched before."""
        return self.one("div", x, self._widened(x, y), out=out)

    def sum_reduce(self, input: Value, *, axes: Sequence[int], out: Expected | None = None) -> Value:
        """The statement of that name; sums of int64, which no version keeps beyond 32 bits, by two halves in float64.

        Each half is exact up to 2^21 elements, and so is their sum modulo 2^64.
        """
        if input.dtype != INT64 or sum_fits(input, axes):
            return self.one("sum_reduce", input, axes=axes, out=out)
        high = self.div(input, 1 << 32)  # towards zero
        halves = high, self.sub(input, self.mul(high, 1 << 32))
        upper, lower = (
            self.cast(self.one("sum_reduce", self.cast(half, FLOAT64), axes=axes), INT64) for half in halves
        )
        return self.add(self.mul(upper, 1 << 32), lower)

    def _widened(self, x: Operand, y: Operand) -> Operand:
        if self.spec.version != MIXED_PRODUCT or not (isinstance(x, Value) and isinstance(y, Value)):
            return y
        shape = broadcast((1,) * (y.rank - x.rank) + x.shape, (1,) * (x.rank - y.rank) + y.shape)
        lifted = self.lift(y, len(shape))
        return self.expand(lifted, shape) if y.dtype.kind == "f" and is_mixed(shape, lifted.shape) else y

    def matmul(self, x: Value, y: Value, out: Expected | None = None, **transposed: bool) -> Value:
        """The product of matrices, with operands that the engine would misread repeated or behind a barrier."""
        if self.spec.version < BATCHED_CONSTANTS:
            x, y = self._batched(x, y), self._batched(y, x)
        if self.spec.version >= REWRITTEN_PRODUCTS:
            rewritten = is_rewritten(x, y), is_rewritten(y, x)
            x, y = (self._kept(v) if broken else v for v, broken in zip((x, y), rewritten, strict=True))
        return self.one("matmul", x, y, out=out, **transposed)

    def stacked_product(self, x: Value, w: Value) -> Value:
        """One product, three times as fast, where the engine would do many."""
        lead = x.shape[:-1]
        if self.spec.version >= PRODUCTS_APART or is_static(lead):
            return super().stacked_product(x, w)
        flat = self.reshape_to(x, (product(lead), x.shape[-1]))
        return self.reshape_to(self.matmul(flat, w, transposeB=True), (*lead, w.shape[0]))

    def conv(self, input: Value, *args: Any, out: Expected | None = None, **attributes: Any) -> Value:
        """The statement of that name; with a window of 1 the engine makes it a product, with the same misreading."""
        if self.spec.version >= REWRITTEN_PRODUCTS and is_tiled(input):
            input = self._kept(input)
        return self.one("conv", input, *args, out=out, **attributes)

    def tract_core_einsum(self, inputs: Sequence[Value], out: Expected, **attributes: Any) -> Value:
        """The statement of that name, with operands that the engine would misread behind a barrier."""
        kept = [self._kept(v) if is_tiled(v) else v for v in inputs]
        return self.call("tract_core_einsum", kept, outs=[out], **attributes)[0]

    def tract_core_scatter_elements(self, input: Value, indices: Value, updates: Value, **attributes: Any) -> Value:
        """The statement of that name; booleans as numbers, which all versions scatter."""
        if input.dtype.kind != "b":
            return self.one("tract_core_scatter_elements", input, indices, updates, **attributes)
        numbers = [self.cast(v, self.truths) for v in (input, updates)]
        out = self.one("tract_core_scatter_elements", numbers[0], indices, numbers[1], **attributes)
        return self.cast(out, input.dtype)

    def block_layout(self) -> BlockLayout:
        if self.spec.version < BLOCKS:
            raise self.fail(f"weights in blocks of 4 bits (Q4_0) are read since tract {BLOCKS}")
        return BlockLayout.NEIGHBOURS if self.spec.version < BLOCKS_IN_HALVES else BlockLayout.HALVES

    def _batched(self, value: Value, other: Value) -> Value:
        if not is_known(other) or not is_stretched(value.shape[:-2], other.shape[:-2]):
            return value
        value = self.lift(value, other.rank)
        batch = broadcast(value.shape[:-2], self.lift(other, value.rank).shape[:-2])
        return self.expand(value, (*batch, *value.shape[-2:]))

    def reshape(self, input: Value, *, shape: Sequence[Dim]) -> Value:
        """The statement of that name, behind a barrier where the engine would move it into a scan or a product.

        With dynamic sizes it is of the axes that change only, and of each group of them alone where there are many: the
        engine compares the numbers of elements as expressions, and does not see that `(B*T)*U` is `(U*B)*T`.
        """
        for (first, end), is_moved in MOVED_RESHAPES:
            if first <= self.spec.version < end and is_moved(input):
                input = self._kept(self.lift(input, max(2, input.rank)))
        wanted = tuple(as_dim(d) for d in shape)
        parts = [] if is_static(input.shape + wanted) else reshape_parts(input.shape, wanted)
        if not parts:
            return self.one("reshape", input, shape=list(wanted))
        whole = joined(parts, input.shape, wanted)
        if max(factors(whole.before), factors(whole.after)) <= 2:
            parts = [whole]
        for part in reversed(parts):
            place: dict[str, Any] = (
                {} if part.count == input.rank else {"axis_start": part.start, "axis_count": part.count}
            )
            results = [Expected(*infer("reshape", {"input": input, "shape": part.after, **place}))]
            (input,) = self.call("reshape", input, shape=_multiplied(part), outs=results, **place)
        return input

    def _kept(self, value: Value) -> Value:
        """The same numbers behind a triangle that keeps everything: no rewriting passes that.

        It takes 30 ns per element, so that it is written only where nothing else helps.
        """
        diagonal = self.constant(np.asarray(-(1 << 30), dtype=np.int64))
        return self.tract_core_trilu(value, k=diagonal, upper=True, out=Expected(value.shape, value.dtype))

    def sums_rows(self, lead: Shape) -> bool:
        """Where a norm over one axis is recognised, or sums are made axis by axis, fast only without others before."""
        if self.spec.version < SUMS_OF_AXES:
            return not same(product(lead), 1)
        return self.spec.version >= FAST_NORMS

    def mean_of(self, value: Value, axes: Sequence[int]) -> Value:
        """Over the last axis beside one of size 1: the sum over the last one alone is half as fast."""
        last = value.rank - 1
        if self.spec.version < SUMS_OF_AXES or list(axes) != [last]:
            return super().mean_of(value, axes)
        row = self.unsqueeze(value, axes=[last])
        return self.squeeze(self.mean_reduce(row, axes=[last, last + 1]), axes=[last])

    def mean_of_squares(self, value: Value, axes: Sequence[int]) -> Value:
        """The plain mean where it makes a norm that the engine has an operator for."""
        if self.spec.version >= FAST_NORMS:
            return self.mean_reduce(self.mul(value, value), axes=list(axes))
        return super().mean_of_squares(value, axes)

    def accumulator(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Float32 for halves also where the engine itself would sum them up in halves."""
        in_halves = self.spec.version < SUMS_IN_SINGLE
        return FLOAT32 if dtype == FLOAT16 and in_halves else super().accumulator(dtype)

    def _pick_known(self, value: Value, axis: int, begin: Dim, end: Dim, step: int) -> Value:
        indices = self.constant(np.arange(int(begin), int(end), step, dtype=np.int64))
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        return self.tract_core_gather(value, indices, axis=axis, out=Expected(shape, value.dtype))

    def _pick_range(self, value: Value, axis: int, begin: Dim, end: Dim, step: int) -> Value:
        """By indices, which are counted from 0: so the engine has no extent to work out itself."""
        counted = Expected((as_dim(floor_div(as_dim(end - begin - 1), step) + 1),), INT64)
        sizes = self.tract_core_range(0, counted.shape[0], 1, out=counted)
        indices = self.tract_core_cast(sizes, to="i64", out=counted)
        if step != 1:
            indices = self.mul(indices, step)
        if begin != 0:
            indices = self.add(indices, self.size(begin, INT64))
        shape = (*value.shape[:axis], *counted.shape, *value.shape[axis + 1 :])
        return self.tract_core_gather(value, indices, axis=axis, out=Expected(shape, value.dtype))


def _multiplied(part: ReshapePart) -> list[Dim]:
    """The sizes after, a product as the engine makes it: it does not see that `T*3-9` is `(T-3)*3`."""
    (first, *more) = part.after
    if more or isinstance(first, int) or not first.is_Add:
        return list(part.after)
    return [sympy.Mul(*part.before, evaluate=False)]
