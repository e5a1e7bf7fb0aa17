"""Random inputs of an ONNX model: sizes of its dynamic dimensions, and values that its operators take."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx

from t2n_core.dialect.graphs.drawing import INTEGER_BOUNDS, SIZES, draw_array
from t2n_core.engine.protocol import Array
from t2n_core.errors import DrawError, InputError, MeaningError
from t2n_core.onnx_file.dimensions import names_in, size_of
from t2n_core.onnx_file.model import OnnxModel, OnnxPort
from t2n_core.onnx_file.references import Reference

_LARGE_SIZES: Final = (96, 128, 224)
"""Sizes for networks that reduce an image several times."""
_MOST_TRIES: Final = 200
_COUNT: Final = 7
_COUNT_FIXED: Final = 3
"""Sets of inputs for a model, and for one without dynamic dimensions."""
_KEEP_ELEMENTS: Final = frozenset(
    {"Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators whose output has elements of their input."""
_INDEXED: Final = {"Gather": 1, "GatherElements": 1}
"""Operators that read their first input at indices from another input, with its place."""


def draw_samples(
    model: OnnxModel, reference: Reference, sizes: Mapping[str, int | Sequence[int]], seconds: float
) -> Iterator[tuple[dict[str, int], list[Array], list[Array]]]:
    """Yield sizes, inputs and outputs for several sizes of the dynamic dimensions, of which `sizes` fixes some.

    For others it has a list of their least size.
    Floats are normally distributed. Integers are indices of a table where the model uses them so, otherwise from 0 to
    10, and from a smaller range if the reference refuses them. There are fewer sizes if half of the seconds is used.
    Raises DrawError if the reference answers to none.
    """
    _check_sizes(model, sizes)
    end = time.monotonic() + seconds / 2
    random = np.random.default_rng(0)
    bounds = index_bounds(model)
    drawn, reason = 0, "no sizes fit its dimensions"
    fixed = {name: size for name, size in sizes.items() if isinstance(size, int)}
    least = {name: size[0] for name, size in sizes.items() if not isinstance(size, int)}
    most = _COUNT if set(model.symbols) - set(fixed) else _COUNT_FIXED
    for assignment in itertools.islice(_assignments(model.symbols, fixed, least), _MOST_TRIES):
        for _ in range(1 if drawn else 2):  # the first twice, so that outputs of different inputs can be compared
            try:
                inputs, outputs = _answered(model, reference, random, assignment, bounds)
            except MeaningError as wrong:
                reason = wrong.message
                break
            yield assignment, inputs, outputs
            drawn += 1
        if drawn == most or (drawn and time.monotonic() > end):
            return
    if not drawn:
        raise DrawError(f"no inputs could be drawn for {model.path}: {reason}", hint="give some: --inputs x.npz")


def sizes_of(model: OnnxModel, inputs: Sequence[Array]) -> dict[str, int]:
    """Return the size of each dynamic dimension in these inputs. Raises InputError for a rank that does not fit."""
    sizes: dict[str, int] = {}
    for port, array in zip(model.inputs, inputs, strict=True):
        if port.shape is None:
            continue
        if len(port.shape) != array.ndim:
            raise InputError(f"the input `{port.name}` has {len(port.shape)} dimensions, and {array.ndim} are given")
        sizes.update({d: size for d, size in zip(port.shape, array.shape, strict=True) if isinstance(d, str)})
    return sizes


def index_bounds(model: OnnxModel) -> dict[str, int]:
    """Return the exclusive bound of each integer input that selects from a stored table: the table's length."""
    stored = {tensor.name: tensor.dims for tensor in model.proto.graph.initializer}
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    for node in model.proto.graph.node:
        for index, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, index))
    bounds: dict[str, int] = {}
    for port in model.inputs:
        if port.dtype.kind not in "iu":
            continue
        pending, lengths, visited = [port.name], [], set[str]()
        while pending:
            name = pending.pop()
            for node, index in readers.get(name, ()):
                if node.op_type in _KEEP_ELEMENTS and index == 0 and node.output[0] not in visited:
                    visited.add(node.output[0])
                    pending.append(node.output[0])
                elif _INDEXED.get(node.op_type) == index and stored.get(node.input[0]):
                    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
                    lengths.append(stored[node.input[0]][axis])
        if lengths:
            bounds[port.name] = min(lengths)
    return bounds


def _check_sizes(model: OnnxModel, sizes: Mapping[str, Any]) -> None:
    names = {name for symbol in model.symbols for name in names_in(symbol)}
    if unknown := set(sizes) - set(model.symbols) - names:
        has = ", ".join(model.symbols) or "none"
        raise InputError(f"{model.path} has no dynamic dimension {', '.join(sorted(unknown))}", hint=f"it has {has}")


def _assignments(
    symbols: Sequence[str], fixed: Mapping[str, int], least: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield sizes of all symbols, and of the names that they are computed from.

    Different sizes come first, then equal ones, then all combinations.
    """
    names = [name for symbol in symbols if symbol not in fixed for name in names_in(symbol)]
    free = [name for name in dict.fromkeys(names) if name not in fixed]
    if not free:
        yield from itertools.repeat(dict(fixed))
    rotated = [itertools.islice(itertools.cycle(SIZES), offset, offset + len(SIZES)) for offset in range(len(free))]
    equal = ([size] * len(free) for size in (*SIZES, *_LARGE_SIZES))
    combined = itertools.product(SIZES, repeat=len(free))
    seen = set[tuple[int, ...]]()
    for sizes in map(tuple, itertools.chain(zip(*rotated, strict=True), equal, combined)):
        if sizes in seen:
            continue
        seen.add(sizes)
        drawn = zip(free, sizes, strict=True)
        assigned = {**fixed, **{name: size + least.get(name, 1) - 1 for name, size in drawn}}
        computed = {symbol: size_of(symbol, assigned) for symbol in symbols if symbol not in assigned}
        if all(size > 0 for size in computed.values()):
            yield {**assigned, **computed}


def _answered(
    model: OnnxModel,
    reference: Reference,
    random: np.random.Generator,
    sizes: Mapping[str, int],
    bounds: Mapping[str, int],
) -> tuple[list[Array], list[Array]]:
    """Return inputs with the largest integers that the reference takes, and its outputs. Raises MeaningError."""
    largest = INTEGER_BOUNDS if any(port.dtype.kind in "iu" for port in model.inputs) else INTEGER_BOUNDS[:1]
    for most in largest:
        inputs = [_draw(random, port, sizes, bounds.get(port.name, most)) for port in model.inputs]
        try:
            return inputs, reference(inputs)
        except MeaningError as wrong:
            refusal = wrong
    raise refusal


def _draw(random: np.random.Generator, port: OnnxPort, sizes: Mapping[str, int], most: int) -> Array:
    if port.shape is None:
        raise InputError(f"the model states no shape of its input `{port.name}`", hint="give some: --inputs x.npz")
    shape = [sizes[d] if isinstance(d, str) else d for d in port.shape]
    bounds = (0, most)
    if port.dtype.itemsize == 1 and port.dtype.kind in "iu":  # quantised values
        bounds = int(np.iinfo(port.dtype).min), int(np.iinfo(port.dtype).max) + 1
    return draw_array(random, port.name, shape, port.dtype, bounds)
