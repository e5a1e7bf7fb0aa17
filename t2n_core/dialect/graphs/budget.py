"""The memory, products and fragments that an evaluation takes, counted before it from sizes and texts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.binding import bind, bind_to, tensors_in
from t2n_core.dialect.evaluator import Evaluation, last_uses
from t2n_core.dialect.expressions import Scope, evaluate_expression
from t2n_core.dialect.graphs.shapes import OF_SIZES, RULES, VIEWS, Arguments, Shape, extents_of
from t2n_core.dialect.scan import named_in_body
from t2n_core.dialect.statements import variable
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import BudgetError
from t2n_core.nnef.reading.document import FragmentText
from t2n_core.nnef.reading.grammar import parse_body
from t2n_core.nnef.reading.tree import Call, Conditional, Node, Statement, parts_of

MEMORY: Final = 8 << 30
"""Bytes of the values that are alive at once."""
FRAGMENTS: Final = 100_000
"""Most fragments that the calls of a graph run, those in loops and conditions not counted."""
_RATE: Final = 1e11
"""Multiply-adds per second of a core, twice the fastest core's."""
_BYTES: Final = 8
"""The size of an element: floats are computed in float64."""
_SHOWN: Final = 300
_STORED: Final = "variable"
_SHAPE: Final = "tract_core_shape_of"
_SCAN: Final = "tract_core_scan"
_MOST_KNOWN: Final = 256
"""Elements of a tensor that is computed, since it may hold sizes."""


def check_fragments(statements: Sequence[Statement], fragments: Mapping[str, FragmentText]) -> None:
    """Raise BudgetError, with the statement, if its calls run too many fragments, or a recursive one."""
    counts: dict[str, int] = {}
    entered: set[str] = set()
    total = 0

    def runs_of(node: Node) -> int:
        if isinstance(node, Conditional):
            return 0
        return sum(map(runs_of, parts_of(node))) + (runs_of_fragment(node.operator) if isinstance(node, Call) else 0)

    def runs_of_fragment(name: str) -> int:
        if name not in fragments:
            return 0
        if name in entered:
            raise BudgetError(f"the fragment `{name}` runs itself")
        if name not in counts:
            entered.add(name)
            counts[name] = 1 + sum(runs_of(body_statement.value) for body_statement in parse_body(fragments[name].text))
            entered.remove(name)
        return counts[name]

    if not fragments:
        return
    for statement in statements:
        try:
            total += runs_of(statement.value)
        except BudgetError as wrong:
            raise _error(wrong.message, statement) from None
        if total > FRAGMENTS:
            raise _error(f"fragments are run more than {FRAGMENTS:,} times", statement)


def check_sizes(
    statements: Sequence[Statement],
    fragments: Mapping[str, FragmentText],
    stored: Mapping[str, Any],
    inputs: Mapping[str, Tensor],
    symbols: Mapping[str, int],
    results: Iterable[str],
    most: int,
    seconds: float | None,
) -> None:
    """Raise BudgetError, with the statement, if the values that are alive at once take more than `most` bytes.

    So does one for which the multiply-adds so far take longer than `seconds` on any machine. Results whose shape does
    not follow from shapes and numbers alone are not counted, nor are weights.
    """
    count = _Count(fragments, stored, symbols, most, seconds)
    count.run(
        statements, {name: _stand_in(tensor.shape, tensor.dtype) for name, tensor in inputs.items()}, tuple(results)
    )


class _Count:
    """The values of an evaluation: tensors whose elements are known if few sizes make them, else without memory."""

    def __init__(
        self,
        fragments: Mapping[str, FragmentText],
        tensors: Mapping[str, Any],
        symbols: Mapping[str, int],
        most: int,
        seconds: float | None = None,
    ) -> None:
        self._evaluation = Evaluation(fragments, tensors, symbols)
        self._most = most
        self._seconds = seconds
        self._alive = 0
        self._products = 0
        self._steps = 1
        """How often the statements of a loop's body run."""
        self._buffers: dict[int, list[int]] = {}
        """Elements and values by the address of the elements, which views share."""

    def run(self, statements: Sequence[Statement], values: dict[str, Any], results: Iterable[str]) -> dict[str, Any]:
        """Return the results, as far as they are known. Raises BudgetError."""
        for value in values.values():
            self._hold(value)
        unused = last_uses(statements, values, results)
        scope = Scope(values, self._evaluation.symbols, self._call)
        for index, statement in enumerate(statements):
            try:
                result = evaluate_expression(statement.value, scope)
            except BudgetError:
                raise
            except Exception:  # the evaluation itself says what is wrong, or the value is not needed
                result = None
            self._assign(statement, result, values)
            size = self._alive * _BYTES
            if size > self._most:
                takes = (
                    f"the values that are alive take {size / 1e9:.3g} GB of memory, more than {self._most / 1e9:.3g} GB"
                )
                raise _error(takes, statement)
            if self._seconds and self._products > self._seconds * _RATE * (os.cpu_count() or 1):
                takes = f"{self._products:,} multiply-adds take longer than {self._seconds:.3g} seconds"
                raise _error(takes, statement)
            for name in unused.get(index, ()):
                self._release(values.pop(name, None))
        result = {name: values[name] for name in results if name in values}
        for value in values.values():
            self._release(value)
        return result

    def _assign(self, statement: Statement, value: Any, values: dict[str, Any]) -> None:
        names = statement.results
        several = isinstance(value, list | tuple)
        if (several and len(value) != len(names)) or value is None or (not several and len(names) > 1):
            return
        for name, result in zip(names, value if several else [value], strict=True):
            if result is not None:
                values[name] = result
                self._hold(result, is_stored=isinstance(statement.value, Call) and statement.value.operator == _STORED)

    def _hold(self, value: Any, *, is_stored: bool = False) -> None:
        if not isinstance(value, Tensor):
            return
        address = _address(value)
        if address not in self._buffers:
            self._buffers[address] = [0 if is_stored else math.prod(value.shape), 0]
            self._alive += self._buffers[address][0]
        self._buffers[address][1] += 1

    def _release(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            return
        buffer = self._buffers[_address(value)]
        buffer[1] -= 1
        if not buffer[1]:
            self._alive -= buffer[0]
            del self._buffers[_address(value)]

    def _call(self, operation: Call, arguments: Sequence[tuple[str, Any]]) -> Any:
        """Return what stands for the results of a call. Raises KeyError for an operator without a rule."""
        name = operation.operator
        if name in self._evaluation.fragments:
            signature, statements = self._evaluation.body_of(name)
            return self._fragment(
                statements, bind_to(signature, arguments), [result.name for result in signature.results]
            )
        bound = bind(name, arguments)
        if name == _SCAN:
            return self._scan(bound)
        if name == _STORED:
            weight = variable(self._evaluation, operation, bound)
            is_small = isinstance(weight.stored, np.ndarray) and math.prod(weight.shape) <= _MOST_KNOWN
            return weight if is_small else _stand_in(weight.shape, weight.dtype)
        tensors = tensors_in(bound)
        if name == _SHAPE:
            return Tensor(np.array(tensors[0].shape, dtype=np.int64), np.dtype(np.int64))
        if name in OF_SIZES and tensors and all(map(_is_known, tensors)):
            return self._evaluation.apply(self._evaluation.definitions[name], bound)
        dtype = tensors[0].dtype if tensors else np.dtype(np.int64)
        if name in VIEWS:
            values = {name: value.stored if isinstance(value, Tensor) else value for name, value in bound.items()}
            views = self._evaluation.definitions[name].function(**values)
            return [_StandIn(view, dtype) for view in views] if isinstance(views, tuple) else _StandIn(views, dtype)
        shapes = RULES[name](bound)
        if name in _PRODUCTS and isinstance(shapes, tuple):
            self._products += self._steps * _PRODUCTS[name](bound, shapes)
        return [_stand_in(shape, dtype) for shape in shapes] if isinstance(shapes, list) else _stand_in(shapes, dtype)

    def _fragment(self, statements: Sequence[Statement], values: dict[str, Any], names: Sequence[str]) -> Any:
        results = self.run(statements, values, names)
        made = [results.get(name) for name in names]
        return made[0] if len(made) == 1 else made

    def _scan(self, bound: Arguments) -> list[Any]:
        """Return what stands for the results of a loop, from one run of its body."""
        bound = named_in_body(bound)
        signature, statements = self._evaluation.body_of(bound["body"])
        values: dict[str, Any] = {name: tensor for name, tensor, *_ in (*bound["full"], *bound["state"])}
        steps = 0
        for name, tensor, axis, chunk in bound["scan"]:
            steps = tensor.shape[axis] // abs(chunk)
            shape = (*tensor.shape[:axis], abs(chunk), *tensor.shape[axis + 1 :])
            values[name] = _stand_in(shape, tensor.dtype)
        around, self._steps = self._steps, self._steps * steps
        results = self.run(statements, values, [result.name for result in signature.results])
        self._steps = around
        made = []
        for name, kind, axis, _ in bound["output"]:
            value = results[name]
            times = steps if kind == "full" else 1
            shape = tuple(size * times if position == axis else size for position, size in enumerate(value.shape))
            made.append(_stand_in(shape, value.dtype))
        return made


def _error(reason: str, statement: Statement) -> BudgetError:
    text = statement.text if len(statement.text) <= _SHOWN else f"{statement.text[:_SHOWN]}…"
    operator = statement.value.operator if isinstance(statement.value, Call) else None
    return BudgetError(f"{reason}, in `{text}`", op=operator, statement=text)


class _StandIn(Tensor):
    """A tensor whose elements are not known."""

    __slots__ = ()

    @property
    def array(self) -> NDArray[Any]:
        raise ValueError("its elements are not known")


def _stand_in(shape: Iterable[int], dtype: np.dtype[Any]) -> _StandIn:
    """Return a tensor of a shape that takes no memory."""
    shape = tuple(map(int, shape))
    if any(size < 0 for size in shape):
        raise ValueError(shape)
    zero = np.zeros((), np.float64 if dtype.kind == "f" else dtype)
    return _StandIn(np.lib.stride_tricks.as_strided(zero, shape, (0,) * len(shape)), dtype)


def _address(value: Tensor) -> int:
    address: int = np.asarray(value.stored).__array_interface__["data"][0]
    return address


def _is_known(value: Tensor) -> bool:
    """Return whether a tensor has its evaluated elements, and only a few."""
    return not isinstance(value, _StandIn) and math.prod(value.shape) <= _MOST_KNOWN


def _deconv(arguments: Arguments, result: Shape) -> int:
    """Each element of the input is multiplied with the filters of all channels of its group."""
    shape: Shape = arguments["input"].shape
    window: Shape = arguments["filter"].shape[2:]
    return math.prod(shape) * (result[1] // (arguments.get("groups", 1) or shape[1])) * math.prod(window)


def _einsum(arguments: Arguments, _: Shape) -> int:
    return math.prod(extents_of(arguments).values()) if len(arguments["inputs"]) > 1 else 0


_PRODUCTS: Final[dict[str, Callable[[Arguments, Shape], int]]] = {
    **dict.fromkeys(
        ("linear", "conv"), lambda arguments, result: math.prod(result) * math.prod(arguments["filter"].shape[1:])
    ),
    **dict.fromkeys(("tract_core_einsum", "tract_onnx_einsum"), _einsum),
    "matmul": lambda arguments, result: (
        math.prod(result) * int(arguments["A"].shape[-2 if arguments.get("transposeA") else -1])
    ),
    "deconv": _deconv,
    "tract_transformers_sdpa": lambda arguments, result: (
        (math.prod(arguments["q"].shape) + math.prod(result)) * arguments["k"].shape[-2]
    ),
}
"""The multiply-adds of operators that compute more numbers than they return, by their arguments and their result.

Their definitions compute each one, without an order of sums that takes fewer.
"""
