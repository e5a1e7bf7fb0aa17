"""Pieces of tensors and other shapes of them, as tract reads them right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.shapes import infer
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Shape, as_dim, floor_div, has_extremes, is_static, product
from t2n_core.nnef.sizes.reshapes import ReshapePart, factors, joined, reshape_parts
from t2n_core.nnef.tract.arithmetic import INT64, TractArithmetic
from t2n_core.nnef.tract.barriers import fence
from t2n_core.nnef.tract.empty import without_empty
from t2n_core.nnef.tract.optimiser import MOVED_RESHAPES
from t2n_core.nnef.tract.sizes import is_quotient, is_seen_within, without_differences


class TractLayout(TractArithmetic):
    """Writes the operators that move elements and do not change them: slice, gather, concat, reshape."""

    def expand(self, value: Value, shape: Shape) -> Value:
        repeats = self.repeats(value, shape)
        if all(isinstance(r, int) and r == 1 for r in repeats):
            return value
        return self.tile(value, repeats=repeats)

    def respelled(self, value: Value) -> Value:
        """Return a value whose axes have the sizes that are written here, where the engine spells them otherwise: a
        quotient of a minimum is a minimum of quotients."""
        for axis, size in enumerate(value.shape):
            if has_extremes(size) and not isinstance(size, int) and size.has(FloorDiv):
                value = self._cut(value, axis, 0, size, 1)
        return value

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
            if self._must_be_picked(value.shape[axis], first, last):
                value = self._pick_range(value, *bound)
                bounds.remove(bound)
            elif self._is_clamped(value.shape[axis], first, last):
                value = self._cut(value, *bound)
                bounds.remove(bound)
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

    def concat(self, values: Sequence[Value], *, axis: int) -> Value:
        """The statement of that name. The engine adds up the extents of the parts, and does not see that the sum of a
        minimum and of what is beyond it, or of two halves, is the size that later statements are written with; so it is
        told.
        """
        whole = self.one("concat", values, axis=axis)
        size = whole.shape[axis]
        parts = [sympy.sympify(v.shape[axis]) for v in values]
        if all(part.is_Integer for part in parts) or self.options.streaming:
            return whole
        quotients = set().union(*(part.atoms(FloorDiv) for part in parts))
        if not any(map(has_extremes, parts)) and sympy.sympify(size).atoms(FloorDiv) == quotients:
            return whole
        return self._cut(whole, axis, 0, size, 1)

    def _must_be_picked(self, size: Dim, begin: Dim, end: Dim) -> bool:
        """Return whether `slice` takes no such bounds, or the engine would not find out the extent that it has."""
        if is_static((size, begin, end)):
            return False
        if not self.traits.slices_by_sizes:
            return not is_static((begin, end))
        length = as_dim(end - begin)
        if (
            self.traits.is_slow_between_quotients
            and not self.options.streaming
            and is_quotient(begin)
            and is_quotient(end)
        ):
            return True
        return bool(self.traits.merges_quotients and without_differences(length) != length)

    def _is_clamped(self, size: Dim, begin: Dim, end: Dim) -> bool:
        """Return whether `slice` would compare these bounds with the axis, and infer another extent than it has."""
        if is_static((size, begin, end)) or not self.traits.clamps_slice_ends:
            return False
        if self.options.streaming and not is_static((begin, end)):  # nothing but a `slice` can be streamed
            return is_quotient(begin) or is_quotient(end)
        return not (is_seen_within(begin, size) and is_seen_within(end, size))

    def _cut(self, value: Value, axis: int, begin: Dim, end: Dim, step: int) -> Value:
        """Return `value[begin:end:step]` by the operator that is told how long its result is, where there is one."""
        length = as_dim(end - begin)
        shape = (*value.shape[:axis], length, *value.shape[axis + 1 :])
        if not self.traits.clamps_slice_ends:
            out = Expected(shape, value.dtype)
            return self.call("slice", value, axes=[axis], begin=[begin], end=[end], outs=[out])[0]
        piece = self.tract_core_dyn_slice(
            value, start=begin, end=end, len=length, axis=axis, out=Expected(shape, value.dtype)
        )
        if step == 1:
            return piece
        if is_static((begin, end)):
            return self._every_nth(piece, axis, 0, int(end - begin), step)
        return self._pick_range(piece, axis, 0, length, step)

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

    def _pick_range(self, value: Value, axis: int, begin: Dim, end: Dim, step: int) -> Value:
        """Return `value[begin:end:step]` by a gather at computed indices: the engine infers no extent itself."""
        count = as_dim(floor_div(as_dim(end - begin - 1), step) + 1)
        indices = self.positions(count)
        if step != 1:
            indices = self.mul(indices, step)
        if begin != 0:
            indices = self.add(indices, self.size(begin, INT64))
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        return self.tract_core_gather(value, indices, axis=axis, out=Expected(shape, value.dtype))

    def reshape(self, input: Value, *, shape: Sequence[Dim]) -> Value:
        """Write a reshape, with a barrier before it where the engine would move it into a scan or a product.

        With dynamic sizes only the axes that change are reshaped, and each group of them alone if there are many: the
        engine compares the numbers of elements as expressions, and does not see that `(B*T)*U` is `(U*B)*T`.
        """
        if any(getattr(self.traits, trait) and is_moved(input) for trait, is_moved in MOVED_RESHAPES):
            input = fence(self, input)
        wanted = tuple(as_dim(d) for d in shape)
        if self.traits.fails_on_empty_reshapes:
            self.graph.sizes = without_empty(self.graph.sizes, input.shape)
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


def _multiplied(part: ReshapePart) -> list[Dim]:
    """The sizes after, a product as the engine makes it: it does not see that `T*3-9` is `(T-3)*3`."""
    (first, *more) = part.after
    if more or isinstance(first, int) or not first.is_Add:
        return list(part.after)
    return [sympy.Mul(*part.before, evaluate=False)]
