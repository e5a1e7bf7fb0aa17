"""Operations that no release runs pulse by pulse, since they need more than the steps up to now; refused at export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from t2n_core.errors import LowerError, UnsupportedOpsError
from t2n_core.nnef.graph import Graph, Operation, Value
from t2n_core.nnef.sizes.dims import Dim, shape_text, symbols_of
from t2n_core.nnef.tract.builder import TractBuilder

_Reason: TypeAlias = tuple[str, str]
"""A message, and a hint."""
_IsStreamed: TypeAlias = Callable[[Dim], bool]
"""Returns whether an axis of this size is the stream's axis."""

_NO_END: Final = "is not possible in a stream, which has no last step"
_OF_ALL: Final = (
    "softmax tract_core_softmax tract_core_log_softmax tract_core_topk tract_core_fft moments l1_normalization "
    "l2_normalization tract_core_rms_norm tract_core_scaled_rms_norm tract_transformers_rms_norm"
).split()
"""Operators over whole axes, in addition to all that are called `…_reduce`."""
_BY_INDEX: Final = ("tract_core_gather", "tract_core_gather_elements", "tract_core_scatter_elements")


def refuse_unstreamable(g: TractBuilder) -> None:
    """Raise UnsupportedOpsError for the operations of a finished graph that cannot run along the axis of its stream."""
    if g.streamed_symbol is None:
        return
    read = _read_values(g.graph)
    problems = [
        LowerError(message, origin=operation.origin, target=str(g.spec), hint=hint)
        for operation in g.graph.operations
        for message, hint in _reasons(g.is_streamed, operation, read)
    ]
    if problems:
        raise UnsupportedOpsError(problems, target=str(g.spec))


def may_be_streamed(graph: Graph, symbol: str) -> bool:
    """Return whether nothing is known that keeps a graph from running along the axes of a symbol, pulse by pulse."""
    read = _read_values(graph)

    def is_streamed(size: Dim) -> bool:
        return symbol in symbols_of([size])

    return not any(
        _is_reflected(is_streamed, operation) or any(_reasons(is_streamed, operation, read))
        for operation in graph.operations
    )


def _is_reflected(is_streamed: _IsStreamed, operation: Operation) -> bool:
    """Return whether an operation reflects steps at an end of the stream, which every engine refuses so far."""
    if operation.name != "pad" or operation.arguments["border"] != "reflect":
        return False
    sizes = next(operation.inputs()).shape
    return any(is_streamed(size) and any(p) for size, p in zip(sizes, operation.arguments["padding"], strict=True))


def _read_values(graph: Graph) -> set[Value]:
    return {value for operation in graph.operations for value in operation.inputs()} | set(graph.outputs)


def _reasons(is_streamed: _IsStreamed, operation: Operation, read: set[Value]) -> Iterator[_Reason]:
    """Yield why an operation cannot run in a stream, at most one reason; `read` are the values that are used."""
    find = _FINDERS.get(operation.name, _of_all if operation.name.endswith(("_reduce", "_reduce_last")) else None)
    reason = find(is_streamed, operation, read) if find is not None else None
    if reason is None:
        pairs = (value.shape for value in operation.outputs if sum(map(is_streamed, value.shape)) > 1)
        shape = next(pairs, None)
        if shape is not None:
            reason = (
                f"a result of all pairs of steps, {shape_text(shape)}, {_NO_END}",
                "compute with each step and a window of the steps before it",
            )
    if reason is not None:
        yield reason


def _of_all(is_streamed: _IsStreamed, operation: Operation, read: set[Value]) -> _Reason | None:
    source, arguments = next(operation.inputs()), operation.arguments
    axes: list[int] = arguments["axes"] if "axes" in arguments else [arguments["axis"]]
    if not any(is_streamed(source.shape[axis]) for axis in axes):
        return None
    return (
        f"`{operation.name}` over all steps {_NO_END}",
        "pool over a window of steps, or take the running form, such as cumsum",
    )


def _by_index(is_streamed: _IsStreamed, operation: Operation, read: set[Value]) -> _Reason | None:
    source = next(operation.inputs())
    if not is_streamed(source.shape[operation.arguments["axis"]]):
        return None
    return f"picking steps by their index {_NO_END}", "keep the order of the steps; every n-th one can be taken"


def _product(is_streamed: _IsStreamed, operation: Operation, read: set[Value]) -> _Reason | None:
    left, is_turned = operation.arguments["A"], operation.arguments.get("transposeA", False)
    if not isinstance(left, Value) or not is_streamed(left.shape[-2 if is_turned else -1]):
        return None
    return f"a product that sums over all steps {_NO_END}", "sum over a window of steps, as a convolution does"


def _scan(is_streamed: _IsStreamed, operation: Operation, read: set[Value]) -> _Reason | None:
    scanned: list[Any] = operation.arguments["scan"]
    if not any(is_streamed(value.shape[axis]) for _, value, axis, _ in scanned):
        return None
    if any(pace < 0 for *_, pace in scanned):
        return (
            f"a loop from the last step to the first {_NO_END}",
            "run it forwards only, as without bidirectional=True",
        )
    kinds = zip(operation.arguments["output"], operation.outputs, strict=True)
    if any(kind == "last" and value in read for (_, kind, *_), value in kinds):
        return (
            f"the state after the last step {_NO_END}",
            "return the output of all steps, of which the caller takes the newest; the engine keeps the state itself",
        )
    return None


_FINDERS: Final[dict[str, Callable[[_IsStreamed, Operation, set[Value]], _Reason | None]]] = {
    **dict.fromkeys(_OF_ALL, _of_all),
    **dict.fromkeys(_BY_INDEX, _by_index),
    "matmul": _product,
    "tract_core_scan": _scan,
}
