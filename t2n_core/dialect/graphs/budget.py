"""The memory and the number of fragments that an evaluation takes, counted before it from sizes and texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from t2n_core.dialect.binding import bind
from t2n_core.dialect.expressions import Scope, evaluate_expression
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import BudgetError
from t2n_core.nnef.reading.document import FragmentText
from t2n_core.nnef.reading.grammar import parse_body
from t2n_core.nnef.reading.tree import Call, Conditional, Node, Statement, names_in, parts_of

MEMORY: Final = 8 << 30
"""Bytes of the values that are alive at once."""
FRAGMENTS: Final = 100_000
"""Most fragments that the calls of a graph run, those in loops and conditions not counted."""
_BYTES: Final = 8
"""The size of an element: floats are computed in float64."""
_SHOWN: Final = 300
_STORED: Final = "variable"
Shape = tuple[int, ...]
Arguments = Mapping[str, Any]


def check_fragments(statements: Sequence[Statement], fragments: Mapping[str, FragmentText]) -> None:
    """Raise BudgetError, with the statement, if its calls run too many fragments, or one that runs itself."""
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
            counts[name] = 1 + sum(runs_of(one.value) for one in parse_body(fragments[name].text))
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


def check_memory(
    statements: Sequence[Statement],
    inputs: Mapping[str, Tensor],
    symbols: Mapping[str, int],
    results: Iterable[str],
    most: int,
) -> None:
    """Raise BudgetError, with the statement, if the values that are alive at once take more than `most` bytes.

    Results whose shape does not follow from shapes and numbers alone are not counted, nor are weights.
    """
    last_use = dict.fromkeys(inputs, 0)
    for place, statement in enumerate(statements):
        last_use.update(dict.fromkeys((*statement.results, *names_in(statement.value)), place))
    for name in results:
        last_use.pop(name, None)
    released: dict[int, list[str]] = {}
    for name, place in last_use.items():
        released.setdefault(place, []).append(name)
    values: dict[str, Any] = {name: _stand_in(one.shape, one.dtype) for name, one in inputs.items()}
    counted = {name: math.prod(one.shape) for name, one in values.items()}
    alive = sum(counted.values())
    scope = Scope(values, symbols, _call)
    for place, statement in enumerate(statements):
        try:
            found = evaluate_expression(statement.value, scope)
        except Exception:  # the evaluation itself says what is wrong, or the value is not needed
            found = None
        if found is not None and len(statement.results) == 1:
            values[statement.results[0]] = found
            is_stored = isinstance(statement.value, Call) and statement.value.operator == _STORED
            if isinstance(found, Tensor) and not is_stored:
                counted[statement.results[0]] = math.prod(found.shape)
                alive += counted[statement.results[0]]
        size = alive * _BYTES
        if size > most:
            takes = f"the values that are alive take {size / 1e9:.3g} GB of memory, more than {most / 1e9:.3g} GB"
            raise _error(takes, statement)
        for name in released.get(place, ()):
            values.pop(name, None)
            alive -= counted.pop(name, 0)


def _error(reason: str, statement: Statement) -> BudgetError:
    text = statement.text if len(statement.text) <= _SHOWN else f"{statement.text[:_SHOWN]}…"
    operator = statement.value.operator if isinstance(statement.value, Call) else None
    return BudgetError(f"{reason}, in `{text}`", op=operator, statement=text)


def _stand_in(shape: Iterable[int], dtype: np.dtype[Any]) -> Tensor:
    """Return a tensor of a shape that takes no memory."""
    shape = tuple(map(int, shape))
    if any(size < 0 for size in shape):
        raise ValueError(shape)
    kind = np.dtype(np.float64) if dtype.kind == "f" else dtype
    zero = np.zeros((), kind)
    return Tensor(np.lib.stride_tricks.as_strided(zero, shape, (0,) * len(shape)), dtype)


def _call(operation: Call, arguments: Sequence[tuple[str, Any]]) -> Tensor:
    """Return a tensor of the shape of an operation's result. Raises KeyError for an operator without a rule."""
    bound = bind(operation.operator, arguments)
    if operation.operator == _STORED:
        return _stand_in(bound["shape"], np.dtype(np.float32))
    rule = _SHAPES[operation.operator]
    first = next(one for one in bound.values() for one in (one if isinstance(one, list) else [one]) if _is_tensor(one))
    return _stand_in(rule(bound), first.dtype)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _of_first(arguments: Arguments) -> Shape:
    shape: Shape = next(one for one in arguments.values() if _is_tensor(one)).shape
    return shape


def _broadcast(arguments: Arguments) -> Shape:
    shapes = [one.shape for one in arguments.values() if _is_tensor(one)]
    rank = max(map(len, shapes))  # NNEF aligns leading axes
    return np.broadcast_shapes(*(shape + (1,) * (rank - len(shape)) for shape in shapes))


def _tile(arguments: Arguments) -> Shape:
    return tuple(size * times for size, times in zip(_of_first(arguments), arguments["repeats"], strict=True))


def _pad(arguments: Arguments) -> Shape:
    return tuple(size + sum(both) for size, both in zip(_of_first(arguments), arguments["padding"], strict=True))


def _concat(arguments: Arguments) -> Shape:
    values, axis = arguments["values"], arguments["axis"]
    shape = list(values[0].shape)
    shape[axis] = sum(one.shape[axis] for one in values)
    return tuple(shape)


def _stack(arguments: Arguments) -> Shape:
    values, axis = arguments["values"], arguments["axis"]
    shape = list(values[0].shape)
    shape.insert(axis, len(values))
    return tuple(shape)


def _matmul(arguments: Arguments) -> Shape:
    a, b = list(arguments["A"].shape), list(arguments["B"].shape)
    rows = a[-1] if arguments.get("transposeA") else a[-2]
    columns = b[-2] if arguments.get("transposeB") else b[-1]
    return (*np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2])), rows, columns)


def _linear(arguments: Arguments) -> Shape:
    return (*_of_first(arguments)[:-1], arguments["filter"].shape[0])


def _transpose(arguments: Arguments) -> Shape:
    shape = _of_first(arguments)
    return tuple(shape[axis] for axis in arguments["axes"])


def _unsqueeze(arguments: Arguments) -> Shape:
    shape = list(_of_first(arguments))
    for axis in sorted(arguments["axes"]):
        shape.insert(axis, 1)
    return tuple(shape)


def _reduced(arguments: Arguments) -> Shape:
    return tuple(1 if axis in arguments["axes"] else size for axis, size in enumerate(_of_first(arguments)))


def _to_shape(arguments: Arguments) -> Shape:
    return tuple(arguments["shape"])


_OF_FIRST: Final = """relu sigmoid silu tanh softabs softplus elu selu gelu prelu leaky_relu softmax abs neg sign copy
    rcp sqr sqrt rsqr rsqrt exp log log2 sin cos tan asin acos atan sinh cosh asinh acosh atanh floor ceil round not
    batch_normalization tract_core_erf tract_core_silu tract_core_hard_swish tract_core_softmax tract_core_cumsum"""
_BROADCAST: Final = "add sub mul div pow min max and or lt gt le ge eq ne select clamp"
_SHAPES: Final[dict[str, Callable[[Arguments], Shape]]] = {
    **dict.fromkeys(_OF_FIRST.split(), _of_first),
    **dict.fromkeys(_BROADCAST.split(), _broadcast),
    **dict.fromkeys(("sum_reduce", "mean_reduce", "max_reduce", "min_reduce"), _reduced),
    "tile": _tile,
    "pad": _pad,
    "concat": _concat,
    "stack": _stack,
    "matmul": _matmul,
    "linear": _linear,
    "transpose": _transpose,
    "unsqueeze": _unsqueeze,
    "tract_core_broadcast": _to_shape,
}
