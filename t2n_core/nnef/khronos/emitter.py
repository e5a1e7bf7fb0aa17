"""Emitter of flat NNEF 1.0, the Khronos standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.errors import LowerError
from t2n_core.nnef.arguments import count_axes
from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import FLOAT32, Operation, Value
from t2n_core.nnef.khronos.builder import KhronosBuilder
from t2n_core.nnef.khronos.forms import FORMS
from t2n_core.nnef.khronos.integers import REAL, in_floats
from t2n_core.nnef.sizes.dims import Dim, Shape, is_static
from t2n_core.nnef.sizes.ranges import SizeRange


class KhronosEmitter(KhronosBuilder):
    """Flat NNEF 1.0: standard operators, fixed sizes, scalar (float32), integer and logical tensors."""

    def call(
        self, operator: str, *args: Any, outs: Sequence[Expected] | None = None, **attributes: Any
    ) -> tuple[Value, ...]:
        """Write an operation; operators that the standard lacks are expressed by those it has."""
        if operator in FORMS:
            return (FORMS[operator](self, *args, **count_axes(operator, attributes, args)),)
        if operator in REAL and outs is None and any(isinstance(a, Value) and a.dtype.kind in "iu" for a in args):
            return (in_floats(self, operator, list(args), attributes),)
        return super().call(operator, *args, outs=outs, **attributes)

    def state_index(self, value: Value, size: Dim) -> None:
        if isinstance(size, int):
            self.magnitudes.state(value, size)

    def declare_symbols(self, sizes: SizeRange) -> None:
        """Declare nothing: `external` refuses an input with a symbol."""

    def external(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Value:
        if not is_static(shape):
            raise LowerError(
                f"input `{name}` has a dynamic axis; NNEF 1.0 has fixed sizes only",
                target=str(self.spec),
                hint="export without dynamic_axes for this target, one archive per size",
            )
        value = Value(name, dtype, shape)
        value.producer = Operation("external", {"shape": list(shape)}, (value,), None, self.variable_dtype(dtype))
        self.graph.operations.append(value.producer)
        self.graph.inputs.append(value)
        return value

    def need_sizes(self, names: set[str]) -> None:
        raise self.fail(f"the size {', '.join(sorted(names))} is dynamic; NNEF 1.0 has fixed sizes only")

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        if value.dtype == dtype:
            return value
        if dtype.kind == "b" and value.dtype.kind == "f":
            return self.ne(value, 0.0)
        if dtype.kind == "f" and value.dtype.kind == "b":
            return self.select(value, self.constant(np.ones(value.rank * (1,), dtype)), 0.0)
        if (
            dtype.kind in "iu"
            and dtype.itemsize < 4
            and value.dtype.kind in "iuf"
            and not np.can_cast(value.dtype, dtype)
            and not (value.dtype.kind in "iu" and self.magnitudes.of(value) <= np.iinfo(dtype).max)
        ):
            raise self.fail(f"NNEF 1.0 has one integer type: a cast that wraps around to {dtype} cannot be expressed")
        if dtype == FLOAT32 or dtype.kind in "iub":
            results = [Expected(value.shape, dtype)]
            return self.write("cast", {"input": value}, results, self.variable_dtype(dtype))[0]
        raise self.fail(f"NNEF 1.0 has no dtype {dtype}")

    def size(self, dim: Dim, dtype: np.dtype[Any]) -> Value:
        if not isinstance(dim, int):
            raise self.fail(f"the size {dim} is dynamic; NNEF 1.0 has fixed sizes only")
        return self.constant(np.asarray(dim, dtype=dtype))

    def positions(self, count: Dim) -> Value:
        if not isinstance(count, int):
            raise self.fail(f"the size {count} is dynamic; NNEF 1.0 has fixed sizes only")
        return self.constant(np.arange(count, dtype=np.int64))

    def expand(self, value: Value, shape: Shape) -> Value:
        repeats = self.repeats(value, shape)
        return value if all(r == 1 for r in repeats) else self.tile(value, repeats=repeats)

    def recip(self, x: Value) -> Value:
        """Write 1 / x under the standard's name."""
        return self.call("rcp", x)[0]

    def pick(self, value: Value, indices: Value, axis: int) -> Value:
        return self.gather(value, indices, axis=axis)
