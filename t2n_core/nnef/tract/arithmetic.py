"""Sums, products and means as tract computes them right, and in the order that is fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import FLOAT16, FLOAT32, Emitter, Expected, Operand
from t2n_core.nnef.graph import Value, is_full
from t2n_core.nnef.shapes import broadcast, is_mixed, is_stretched
from t2n_core.nnef.sizes.dims import Shape, at_most, is_static, product, same
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.barriers import fence
from t2n_core.nnef.tract.optimiser import IN_PLACE, is_smaller, lone_axis, may_be_misread, sum_fits
from t2n_core.nnef.tract.propagated import known
from t2n_core.nnef.tract.sizes import argument_for
from t2n_core.nnef.tract.traits import traits_of
from t2n_core.nnef.writing_options import PLAIN, WritingOptions

FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)
FOLDING = {
    **dict.fromkeys(("mul", "div", "pow", "and"), ("x", "y")),
    "select": ("condition", "true_value", "false_value"),
}
"""Operands that the engine takes for a single number, whatever their shape; see `folds_uniform_tensors`."""
COMMUTATIVE = frozenset("add mul max min".split())


class TractArithmetic(Emitter):
    """Operators element by element, and sums."""

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        super().__init__(spec, name=name, options=options)
        self.traits = traits_of(spec.version)
        self._has_lone_axis, self._is_known = lone_axis(), known()

    def write(
        self, operator: str, arguments: dict[str, Any], results: Sequence[Expected], dtype: str = ""
    ) -> tuple[Value, ...]:
        """The statement, its operands in another order or in new memory where the engine would misread the first.

        Sizes are in a form that the engine works out right.
        """
        try:
            arguments = {name: argument_for(self.traits, argument) for name, argument in arguments.items()}
        except ValueError as wrong:
            raise self.fail(f"`{operator}`: {wrong}") from wrong
        if operator in FOLDING:
            arguments = self._shaped(operator, arguments, results[0])
        if operator in IN_PLACE and self.traits.misreads_unit_axes:
            arguments = self._renewed(operator, arguments)
        return super().write(operator, arguments, results, dtype)

    def _shaped(self, operator: str, arguments: dict[str, Any], result: Expected) -> dict[str, Any]:
        """Operands that give the result its shape although the engine may take one of them for a number.

        The others are repeated to that shape, or, where the engine would undo that, it is put behind a barrier.
        """
        for name in FOLDING[operator]:
            value, others = arguments[name], [other for other in FOLDING[operator] if other != name]
            if not isinstance(value, Value) or not self._may_be_a_number(operator, name, value):
                continue
            rest = [arguments[other].shape for other in others if isinstance(arguments[other], Value)]
            if rest and not is_stretched(broadcast(*rest), result.shape):
                continue
            if self.traits.folds_uniform_tensors and not is_static(value.shape):
                arguments = {**arguments, name: fence(self, value)}
            else:
                arguments = {**arguments, **{other: self._repeated(arguments[other], result) for other in others}}
        return arguments

    def _repeated(self, operand: Operand, result: Expected) -> Value:
        value = operand if isinstance(operand, Value) else self.constant(operand, result.dtype)
        return self.expand(self.lift(value, len(result.shape)), result.shape)

    def _may_be_a_number(self, operator: str, name: str, value: Value) -> bool:
        if name == "y" and (operator == "pow" or (operator == "div" and value.dtype.kind in "iu")):
            return is_full(value.weight) if value.weight is not None else self._is_known(value)
        if not self.traits.folds_uniform_tensors or is_static(value.shape):
            return False
        return name in ("x", "y", "condition") and self._is_known(value)

    def _renewed(self, operator: str, arguments: dict[str, Any]) -> dict[str, Any]:
        (of_x, x), (of_y, y), *bounds = arguments.items()
        if isinstance(y, Value) and (not isinstance(x, Value) or is_stretched(x.shape, y.shape)):
            (of_x, x), (of_y, y) = (of_y, y), (of_x, x)  # as the engine does
        operands = [y, *(bound for _, bound in bounds)]
        is_square = operator == "mul" and x is y  # which the engine has an operator for
        if is_square or not isinstance(x, Value):
            return arguments
        if not any(may_be_misread(x, operand) for operand in operands) or not self._has_lone_axis(x):
            return arguments
        turns = operator in COMMUTATIVE and isinstance(y, Value) and not is_stretched(y.shape, x.shape)
        if turns and not self._has_lone_axis(y):
            return {**arguments, of_x: y, of_y: x}
        return {**arguments, of_x: self.cast(self.cast(x, FLOAT64), x.dtype)}

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
        fast = self.traits.wants_small_first and x.dtype == FLOAT32
        return self.max(x, 0.0) if fast else self.one("relu", x)

    def _small_first(self, x: Operand, y: Operand) -> tuple[Operand, Operand]:
        """Operands of which either may be the first."""
        return (y, x) if self.traits.wants_small_first and is_smaller(y, x) else (x, y)

    def sub(self, x: Operand, y: Operand, out: Expected | None = None) -> Value:
        """`x - y`; as `-y + x` where the engine would swap them, or where that is fast."""
        if self.traits.wants_small_first and is_smaller(y, x):
            return self.one("add", self.one("neg", y) if isinstance(y, Value) else -y, x, out=out)
        if (
            self.traits.swaps_sub
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
        """`x / y`, of integers towards zero; a second operand that the engine would misread is stretched before."""
        quotient = self.one("div", x, self._widened(x, y), out=out)
        if isinstance(x, Value) and x.dtype.kind == "i" and self._may_be_shifted(y):
            return self._towards_zero(quotient, x, y)
        return quotient

    def _may_be_shifted(self, y: Operand) -> bool:
        """True if the engine may make this divisor a shift, which rounds down."""
        if not self.traits.shifts_for_powers:
            return False
        if isinstance(y, Value) and y.weight is None:
            return self._is_known(y)
        if isinstance(y, Value) and y.weight is not None:
            numbers = set(np.frombuffer(b"".join(y.weight.chunks()), y.dtype).tolist())
        else:
            numbers = {y}
        return len(numbers) == 1 and numbers != {1} and int(numbers.pop()).bit_count() == 1

    def _towards_zero(self, quotient: Value, x: Value, y: Operand) -> Value:
        """Return a quotient rounded towards zero: one is added where it was rounded down."""
        rest = self.sub(x, self.mul(quotient, y))
        rounded_down = self.and_(self.lt(x, 0), self.gt(rest, 0))
        return self.add(quotient, self.cast(rounded_down, x.dtype))

    def _widened(self, x: Operand, y: Operand) -> Operand:
        if not self.traits.misreads_mixed_operands or not (isinstance(x, Value) and isinstance(y, Value)):
            return y
        shape = broadcast((1,) * (y.rank - x.rank) + x.shape, (1,) * (x.rank - y.rank) + y.shape)
        lifted = self.lift(y, len(shape))
        return self.expand(lifted, shape) if y.dtype.kind == "f" and is_mixed(shape, lifted.shape) else y

    def sum_reduce(self, input: Value, *, axes: Sequence[int], out: Expected | None = None) -> Value:
        """The statement of that name; sums of int64, which no version keeps beyond 32 bits, by two halves in float64.

        Each half is exact up to 2^21 elements, and so is their sum modulo 2^64.
        """
        if self.traits.dies_of_empty_sums and (input.dtype.kind == "f" or input.dtype == INT64):
            input = self._never_empty(input, axes)
        if input.dtype != INT64 or sum_fits(input, axes):
            return self.one("sum_reduce", input, axes=axes, out=out)
        high = self.one("div", input, 1 << 32)  # rounded either way
        halves = high, self.sub(input, self.mul(high, 1 << 32))
        upper, lower = (
            self.cast(self.one("sum_reduce", self.cast(half, FLOAT64), axes=axes), INT64) for half in halves
        )
        return self.add(self.mul(upper, 1 << 32), lower)

    def _never_empty(self, value: Value, axes: Sequence[int]) -> Value:
        """Return a value with a zero appended along each of these axes that may be empty."""
        for axis in axes:
            if not at_most(1, value.shape[axis]):
                zero = self.fill(0, (*value.shape[:axis], 1, *value.shape[axis + 1 :]), value.dtype)
                value = self.concat([value, zero], axis=axis)
        return value

    def sums_rows(self, lead: Shape) -> bool:
        """Return whether a sum over one merged axis is faster here than one over several axes.

        It is in releases that recognise the norm over one axis. In releases that sum one axis after the other, it is
        unless all leading axes have one element.
        """
        if not self.traits.sums_axes_at_once:
            return not same(product(lead), 1)
        return self.traits.fuses_norms

    def mean_of(self, value: Value, axes: Sequence[int]) -> Value:
        """Over the last axis beside one of size 1: the sum over the last one alone is half as fast."""
        last = value.rank - 1
        if not self.traits.sums_axes_at_once or list(axes) != [last]:
            return super().mean_of(value, axes)
        row = self.unsqueeze(value, axes=[last])
        return self.squeeze(self.mean_reduce(row, axes=[last, last + 1]), axes=[last])

    def mean_of_squares(self, value: Value, axes: Sequence[int]) -> Value:
        """The plain mean where it makes a norm that the engine has an operator for."""
        if self.traits.fuses_norms:
            return self.mean_reduce(self.mul(value, value), axes=list(axes))
        return super().mean_of_squares(value, axes)

    def accumulator(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Float32 for halves also where the engine itself would sum them up in halves."""
        return FLOAT32 if dtype == FLOAT16 and self.traits.sums_float16_in_float16 else super().accumulator(dtype)
