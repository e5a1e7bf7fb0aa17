"""Compute the reference with PyTorch: samples of inputs and outputs at the traced sizes and at others."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import sympy
import torch

from t2n_core.check.samples import Sample, resized_input, size_assignments
from t2n_core.errors import CaptureError, InputError
from t2n_core.nnef.sizes.dims import Dim, Shape, evaluate
from t2n_core.nnef.sizes.ranges import SizeRange, ranges_text
from t2n_core.nnef.sizes.size_edges import edges
from t2n_core.op.compression import DequantisedSource
from t2n_core.rewriter.context import without_rewrites
from t2n_core.torch_graph.capture.tracer import CapturedModel
from t2n_core.torch_graph.sizes.refusals import refusal_to_run
from t2n_core.torch_graph.ways_in.inputs import ModelInputs, bind_inputs
from t2n_core.torch_graph.ways_in.sources import Source
from t2n_core.torch_graph.ways_in.structure import leaves

_HUGE = 1 << 22
"""Elements of inputs that are not worth a run which has to fail."""
_LARGE = 512
"""A largest size that is worth a run of the model, also where the example is small."""
_GROWTH = 24
"""Number of larger sizes that are tried after one at which the model itself cannot run."""


class Runnable(Protocol):
    """Interface of a model that can be run as the reference."""

    @property
    def name(self) -> str: ...

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any: ...


@dataclass(slots=True)
class Reference:
    """Samples of inputs and of PyTorch's outputs, for one capture of a model."""

    source: Source
    inputs: ModelInputs
    captured: CapturedModel
    extra_inputs: Callable[[], Iterable[Any]]
    """Gives further arguments, as `args` of an export."""
    kwargs: Mapping[str, Any] | None
    times: dict[str, float]
    """Takes the seconds of the model's runs."""
    _samples: dict[tuple[str, frozenset[str]], list[Sample]] = field(default_factory=dict, repr=False)

    def samples(self, held: SizeRange | None = None, compressed: frozenset[str] = frozenset()) -> list[Sample]:
        """Return samples at sizes within a range, that of the capture if none is given.

        `compressed` are labels of the weights that are taken as they come out of their blocks. Raises InputError.
        """
        held = self.captured.range if held is None else held
        key = (str(held), compressed)
        if key not in self._samples:
            self._samples[key] = self._sampled(self._model(compressed), held)
        return self._samples[key]

    def sample_at(self, sizes: Mapping[str, int], compressed: frozenset[str] = frozenset()) -> Sample:
        """Return random inputs with these sizes of all dynamic axes, and what PyTorch computes of them.

        Raises InputError if the model cannot run at these sizes.
        """
        with without_rewrites():
            return resized_sample(self._model(compressed), self.inputs, self._shapes, dict(sizes))

    def inputs_at(self, sizes: Mapping[str, int]) -> tuple[Any, ...] | None:
        """Return random inputs with these sizes of all dynamic axes; None where there are none, or they are huge."""
        return resized_inputs(self.inputs, self._shapes, dict(sizes))

    @property
    def has_samples(self) -> bool:
        """Return whether the model has run on its example already."""
        return bool(self._samples)

    @property
    def _shapes(self) -> list[Shape]:
        return [value.shape for value in self.captured.graph.inputs]

    def _model(self, compressed: frozenset[str]) -> Runnable:
        return DequantisedSource(self.source, compressed) if compressed else self.source

    def _sampled(self, model: Runnable, held: SizeRange) -> list[Sample]:
        graph, names = self.captured.graph, self.inputs.names
        extra = [bind_inputs(self.source, more, self.kwargs, names) for more in self.extra_inputs()]
        dims = [*(d for value in graph.data_nodes for d in value.shape), *graph.bounds()]
        with without_rewrites(), timed(self.times, "reference"):
            return reference_samples(model, self.inputs, self._shapes, self.captured.symbols, extra, held, dims)


def reference_samples(
    model: Runnable,
    inputs: ModelInputs,
    shapes: Sequence[Shape],
    symbols: dict[str, int],
    extra_inputs: Sequence[ModelInputs] = (),
    held: SizeRange | None = None,
    dims: Iterable[Dim] = (),
) -> list[Sample]:
    """Return the example call, further given calls, and random inputs at other sizes of each dynamic axis.

    A size at which the model itself cannot run is not one of its sizes; the next larger one takes its place. `held` are
    the sizes that the graph holds for, `dims` sizes that it computes, whose edges are tried. Raises InputError if the
    model cannot run on its own example.
    """
    samples = [_sample(model, inputs, inputs.tensors, dict(symbols), "example")]
    for index, more in enumerate(extra_inputs):
        sizes = _sizes_of(shapes, more.tensors)
        if held is not None and sizes.keys() >= held.bounds.keys() and not held.holds(sizes):
            raise InputError(f"inputs[{index}] has {ranges_text([sizes])}, outside of the range {held}")
        samples.append(_sample(model, more, more.tensors, sizes, f"inputs[{index}]"))
    seen = {tuple(sorted(symbols.items()))}
    turns = _with_ends(edges(dims), held, symbols)
    for wanted in size_assignments(symbols, None if held is None else held.bounds, turns):
        at_edge = any(size in turns.get(name, ()) for name, size in wanted.items())
        for sizes in [wanted] if at_edge else _larger(wanted, symbols):
            key = tuple(sorted(sizes.items()))
            if key in seen:
                break
            if held is not None and not held.holds(sizes):
                continue
            try:
                samples.append(resized_sample(model, inputs, shapes, sizes))
            except InputError:
                continue
            seen.add(key)
            break
    return samples


def double_outputs(source: Source, inputs: ModelInputs) -> list[Any]:
    """Return the model's outputs for its example, computed in float64, to tell rounding from a wrong graph."""

    def wide(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)

    args, kwargs = inputs.replaced([wide(t) for t in inputs.tensors])
    with torch.no_grad():
        outputs = source.run_with({name: wide(weight) for name, weight in source.weights.items()}, args, kwargs)
    return [_array(t) for t in tensors_of(outputs)]


def _with_ends(
    turns: Mapping[str, list[int]], held: SizeRange | None, symbols: Mapping[str, int]
) -> dict[str, list[int]]:
    """Return the edges, and each symbol's largest size, unless that is much larger than the example."""
    found = {name: list(sizes) for name, sizes in turns.items()}
    for name, (_, high) in (held.bounds if held is not None else {}).items():
        if high is not None and name in symbols and high <= max(_LARGE, 4 * symbols[name]):
            found.setdefault(name, []).append(high)
    return found


def _sizes_of(shapes: Sequence[Shape], tensors: Sequence[torch.Tensor]) -> dict[str, int]:
    """Return the values of the symbols that are an extent by themselves, read from these tensors."""
    return {
        extent.name: int(size)
        for shape, tensor in zip(shapes, tensors, strict=True)
        for extent, size in zip(shape, tensor.shape, strict=False)
        if isinstance(extent, sympy.Symbol)
    }


def _larger(sizes: dict[str, int], traced: dict[str, int]) -> list[dict[str, int]]:
    """Return these sizes, and larger ones of what differs from the example: a net may take multiples of 8 only."""

    def grown(name: str, size: int, step: int) -> int:
        if size == traced[name]:
            return size
        return min(size + step, traced[name]) if size < traced[name] else size + step

    return [{n: grown(n, s, step) for n, s in sizes.items()} for step in range(_GROWTH)]


def resized_sample(model: Runnable, inputs: ModelInputs, shapes: Sequence[Shape], sizes: dict[str, int]) -> Sample:
    """Return random inputs at these sizes, the same each time. Raises InputError if the model cannot run at them."""
    tensors = [torch.from_numpy(np.array(array)) for array in _resized(inputs, shapes, sizes)]
    return _sample(model, inputs, tensors, sizes, ", ".join(f"{k}={v}" for k, v in sizes.items()))


def resized_inputs(inputs: ModelInputs, shapes: Sequence[Shape], sizes: dict[str, int]) -> tuple[Any, ...] | None:
    """Return the inputs of `resized_sample` without a run of the model; None for impossible or huge sizes."""
    extents = [[evaluate(d, sizes) for d in shape] for shape in shapes]
    if any(extent < 0 for shape in extents for extent in shape) or sum(map(math.prod, extents)) > _HUGE:
        return None
    return tuple(np.ascontiguousarray(a).reshape(a.shape) for a in _resized(inputs, shapes, sizes))


def _resized(inputs: ModelInputs, shapes: Sequence[Shape], sizes: dict[str, int]) -> Iterator[Any]:
    digest = hashlib.sha256(repr(sorted(sizes.items())).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    for tensor, shape in zip(inputs.tensors, shapes, strict=True):
        wanted = tuple(evaluate(d, sizes) for d in shape)
        yield resized_input(tensor.detach().cpu().numpy(), wanted, rng)


def _sample(
    model: Runnable, inputs: ModelInputs, tensors: Sequence[torch.Tensor], sizes: dict[str, int], label: str
) -> Sample:
    args, kwargs = inputs.replaced([t.detach().clone() for t in tensors])  # a model may write into its inputs
    try:
        with torch.no_grad():
            outputs = model.run(args, kwargs)
    except Exception as cause:
        raise refusal_to_run(cause, model.name, label) from cause
    return Sample(tuple(_array(t) for t in tensors), tuple(map(_array, tensors_of(outputs))), sizes, label)


def tensors_of(outputs: Any) -> list[torch.Tensor]:
    """Return the tensors among a model's results, in the order of the exported outputs."""
    return [leaf for leaf in leaves(outputs) if isinstance(leaf, torch.Tensor)]


def _array(tensor: torch.Tensor) -> Any:
    try:
        return np.ascontiguousarray(tensor.detach().cpu().numpy()).reshape(tuple(tensor.shape))
    except TypeError as cause:
        raise CaptureError(f"a tensor of dtype {tensor.dtype} has no form in NNEF") from cause


@contextmanager
def timed(times: dict[str, float], stage: str) -> Iterator[None]:
    """Put the seconds that a block takes under the name of its stage."""
    start = time.perf_counter()
    try:
        yield
    finally:
        times[stage] = time.perf_counter() - start
