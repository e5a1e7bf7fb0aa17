"""Loops at run time: a `tract_core_scan` whose body is a fragment, written by a separate emitter."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.nnef.emitter import Emitter, Expected, Scalar
from t2n_core.nnef.graph import Fragment, Value
from t2n_core.nnef.loop_emitter import Step
from t2n_core.nnef.operation_text import write_operation
from t2n_core.nnef.sizes.dims import Dim, Shape, is_static
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.constants import as_computed
from t2n_core.nnef.tract.sizes.printer import size_text


class _Parameters:
    """The parameters of a body, each with the outer value that it stands for."""

    def __init__(self) -> None:
        self.inner: list[Value] = []
        self.outer: dict[str, list[tuple[str, Value]]] = {"scan": [], "state": [], "full": []}

    def take(self, kind: str, value: Value, shape: Shape | None = None) -> Value:
        """Return the inner value for an outer one; a whole tensor is passed once."""
        if kind == "full":
            for name, outer_value in self.outer[kind]:
                if outer_value is value:
                    return next(v for v in self.inner if v.name == name)
        inner = Value(f"{kind}_{len(self.outer[kind])}", value.dtype, value.shape if shape is None else shape)
        self.outer[kind].append((inner.name, value))
        self.inner.append(inner)
        return inner


def write_loop(
    g: TractBuilder,
    step: Step,
    scanned: Sequence[Value],
    states: Sequence[Value],
    tensors: Sequence[Value] = (),
    *,
    backwards: bool = False,
) -> tuple[list[Value], list[Value]]:
    """Return the last states of a loop, and the rows that its steps return; see `LoopEmitter.loop`."""
    constant = g.facts.is_constant
    sources = [v for v in [*states, *scanned, *tensors, *g.graph.inputs] if not constant(v)]
    if sources:
        scanned = [as_computed(g, v, sources[0]) if constant(v) else v for v in scanned]
        # one of a dynamic shape, such as a weight repeated over a batch, is folded as soon as the size is known
        tensors = [as_computed(g, v, sources[0]) if constant(v) and not is_static(v.shape) else v for v in tensors]
    parameters = _Parameters()
    body = _body(g, parameters)
    chunks = [parameters.take("scan", value, (1, *value.shape[1:])) for value in scanned]
    olds = [parameters.take("state", value) for value in states]
    wholes = [parameters.take("full", value) for value in tensors]
    hidden = _hidden_sizes([*chunks, *states, *tensors])
    if hidden:
        zeros = parameters.take("full", g.fill(0, hidden, chunks[0].dtype))
        chunks[0] = _with_sizes(body, chunks[0], zeros)
    news, rows = step(body, chunks, olds, wholes)
    # an input whose extent is a symbol gives it its size; the engine compares those with expressions with what it has
    parameters.inner.sort(key=_has_expressions)
    results = _apart(body, [*news, *rows])
    news, rows = results[: len(news)], results[len(news) :]
    count, pace = scanned[0].shape[0], -1 if backwards else 1
    of_scan = write_scan(
        g,
        count,
        body=g.fragment(_fragment(g, body, parameters.inner, results)),
        scan=[(name, value, 0, pace) for name, value in parameters.outer["scan"]],
        full=parameters.outer["full"],
        state=[(*old, new.name) for old, new in zip(parameters.outer["state"], news, strict=True)],
        output=[*((v.name, "last", 0, 1) for v in news), *((v.name, "full", 0, pace) for v in rows)],
        outs=[*(Expected(v.shape, v.dtype) for v in states), *(Expected((count, *v.shape[1:]), v.dtype) for v in rows)],
    )
    return list(of_scan[: len(news)]), list(of_scan[len(news) :])


def _apart(body: TractBuilder, results: Sequence[Value]) -> list[Value]:
    """Return the results of a body as distinct values: a fragment has no two results of one name."""
    apart: list[Value] = []
    for value in results:
        is_taken = value in apart or value in body.graph.inputs
        apart.append(body.copy_of(value) if is_taken else value)
    return apart


def write_scan(g: Emitter, count: Dim, *, outs: Sequence[Expected], **arguments: Any) -> tuple[Value, ...]:
    """Write a `tract_core_scan` over `count` steps, which begins with its initial states in each call of the archive.

    By default the engine keeps the states for the next call in one `State`. A stream needs that for a scan along its
    time axis: any dynamic one, where that is not known.
    """
    is_known = isinstance(g, TractBuilder) and g.streamed_symbol is not None
    carries = g.options.streaming and (g.is_streamed(count) if is_known else not isinstance(count, int))
    if not carries and g.spec.has("tract_core_scan", "reset_every_turn"):
        arguments["reset_every_turn"] = 1
    return g.call("tract_core_scan", outs=outs, **arguments)


def _body(g: TractBuilder, parameters: _Parameters) -> TractBuilder:
    """Return the emitter of a body. Its constants are parameters: a fragment contains no weights."""

    class Body(type(g)):  # type: ignore[misc]
        def constant(self, array: NDArray[Any] | Scalar, dtype: np.dtype[Any] | None = None) -> Value:
            return parameters.take("full", g.constant(array, dtype))

    body: TractBuilder = Body(g.spec, options=g.options)
    body.node, body.in_loop = g.node, True
    body.graph.inputs = parameters.inner
    body.reserve(f"{kind}_{n}" for kind in parameters.outer for n in range(100))
    return body


def _has_expressions(value: Value) -> bool:
    """Return whether an extent is computed from symbols, and no symbol itself."""
    return any(not isinstance(extent, int) and not extent.is_Symbol for extent in value.shape)


def _hidden_sizes(values: Sequence[Value]) -> tuple[Dim, ...]:
    """Return the symbols that are not an extent themselves: inside a body the engine knows only symbols that are."""
    extents = [extent for value in values for extent in value.shape if not isinstance(extent, int)]
    symbols = {s for extent in extents for s in extent.free_symbols}
    return tuple(sorted(symbols - {extent for extent in extents if extent.is_Symbol}, key=str))


def _with_sizes(body: TractBuilder, chunk: Value, zeros: Value) -> Value:
    """Return `chunk` plus one of the zeros, whose axes define sizes: the engine ignores an input that nothing reads."""
    axes = list(range(zeros.rank))
    zero = body.slice(zeros, axes=axes, begin=[0 for _ in axes], end=[1 for _ in axes])
    if zero.rank > chunk.rank:
        zero = body.squeeze(zero, axes=axes[chunk.rank :])
    return body.add(chunk, body.lift(zero, chunk.rank))


def _fragment(g: TractBuilder, body: TractBuilder, inputs: Sequence[Value], results: Sequence[Value]) -> Fragment:
    """Return the body as a fragment, under the first free name."""
    lines = [f"  {write_operation(o, g.spec.operator(o.name), size_text)};" for o in body.graph.operations]
    parameters, outputs = (", ".join(f"{v.name}: tensor<scalar>" for v in values) for values in (inputs, results))
    uses = frozenset(operation.name for operation in body.graph.operations)
    for number in itertools.count():
        name = f"loop_{number}"
        text = "\n".join([f"fragment {name}({parameters}) -> ({outputs})", "{", *lines, "}"])
        if g.graph.fragments.get(name, Fragment(name, text)).text == text:
            break
    return Fragment(name, text, uses)
