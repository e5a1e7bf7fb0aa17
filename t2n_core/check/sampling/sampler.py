"""Samples of a model, run by PyTorch: the example, calls given by the user, and random inputs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import sympy
import torch

from t2n_core.check.sampling.code_sizes import CodeSizes, largest
from t2n_core.check.sampling.draws import Distribution, Draws
from t2n_core.check.sampling.input_function import InputFunction
from t2n_core.errors import CaptureError, InputError
from t2n_core.nnef.sizes.dims import Dim, Shape, evaluate
from t2n_core.nnef.sizes.ranges import SizeRange, ranges_text
from t2n_core.nnef.sizes.size_edges import edges
from t2n_core.parity.samples import Array, Sample, size_assignments
from t2n_core.parity.sensitivity import has_grown, overflows, unmoved_outputs
from t2n_core.torch_graph.capture.errors import refusal_to_run
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.results import tensors_of
from t2n_core.torch_graph.proofs.compared_numbers import reads_sizes

_Key: TypeAlias = tuple[tuple[str, int], ...]
_HUGE = 1 << 22
"""Most elements of inputs for a run that is expected to fail."""
_GROWTH = 24
"""Number of larger sizes that are tried after one at which the model itself cannot run."""
_DISTRIBUTIONS = (Distribution.ALIKE, Distribution.NEAR, Distribution.GENTLE, Distribution.OWN)
"""Tried in turn until the model runs, with outputs about as large as the example's, and as finite."""
_CALM = _DISTRIBUTIONS[1:]
"""Tried in turn at a long size, where sums of floats that are further out would be larger than the example's."""
_BOLDER = (Distribution.SIGNED, Distribution.COARSE, Distribution.WIDE, Distribution.SPARSE, Distribution.SPECIAL)
"""Tried in turn while an output does not change; the first one also if floats of the example have one sign."""


class Runnable(Protocol):
    """Interface of a model that can be run as the reference."""

    @property
    def name(self) -> str: ...

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any: ...


class Sampler:
    """Creates samples of one model, reproducible in every session."""

    def __init__(
        self,
        model: Runnable,
        inputs: ModelInputs,
        shapes: Sequence[Shape],
        symbols: Mapping[str, int],
        function: InputFunction | None = None,
        code: Any = None,
        domain: AbstractContextManager[Any] | None = None,
    ) -> None:
        """Take a model with its example call, the symbolic shapes of its inputs, and the example's sizes.

        A `function` creates the inputs instead of random draws. `code` is the module or function whose Python code is
        read for integers that it compares sizes with. In `domain` the model refuses drawn inputs without a meaning.
        """
        self._domain_of_draws = domain
        self._code = code
        self._function = function
        self._model, self._inputs, self._shapes, self._symbols = model, inputs, shapes, dict(symbols)
        self._draws = Draws([_array(tensor) for tensor in inputs.tensors], self._runs)
        self._signed = False
        """True once a sample has floats of the sign that the example's never have."""

    @cached_property
    def _domain(self) -> AbstractContextManager[Any]:
        """The domain of drawn inputs; any input is in it where the example is not."""
        if self._domain_of_draws is None:
            return nullcontext()
        try:
            with self._domain_of_draws:
                self.sample_of(self.example.inputs)
        except InputError:
            return nullcontext()
        return self._domain_of_draws

    @cached_property
    def example(self) -> Sample:
        """Sample of the example call. Raises InputError if the model cannot run on it."""
        return self._sample(self._inputs, self._inputs.tensors, self._symbols, "example")

    @property
    def drawn(self) -> dict[str, str]:
        """Return how each input is drawn, by name, if the model accepts that; empty if no input was drawn."""
        if self._function is not None:
            return dict.fromkeys(self._inputs.names, "by the function of `inputs`")
        return self._draws.describe(self._inputs.names, self._signed) if self._draws.has_drawn else {}

    def samples(
        self,
        user_calls: Sequence[ModelInputs] = (),
        valid_range: SizeRange | None = None,
        dims: Iterable[Dim] = (),
        sizes: Sequence[Any] = (...,),
    ) -> list[Sample]:
        """Return the example, the calls in `user_calls`, inputs of the example's sizes, and inputs of other sizes.

        A size at which the model itself cannot run is replaced by the next larger one. `valid_range` is the range of
        sizes for which the graph is valid, `dims` are sizes that it computes, whose edges are tried. `sizes` are the
        sizes to check at besides the example's, with an ellipsis for the automatic ones.

        Raises InputError if the model cannot run on its own example, or at one of `sizes`.
        """
        unresized = [
            self.example,
            *(self._user_sample(index, call, valid_range) for index, call in enumerate(user_calls)),
        ]
        unresized += self._further(unresized)
        resized = self._at_wanted([entry for entry in sizes if entry is not ...], valid_range)
        if ... in sizes:
            seen = [sample.sizes for sample in resized]
            resized += [
                sample for sample in self._samples_at_other_sizes(valid_range, dims) if sample.sizes not in seen
            ]
        if resized and unmoved_outputs([*unresized, *resized]):  # too few sizes are left for outputs to change
            twin = self._draw_sample(dict(resized[-1].sizes), _DISTRIBUTIONS, turn=1)
            resized += [] if isinstance(twin, InputError) else [twin]
        return [*unresized, *resized]

    def sample_at(self, sizes: Mapping[str, int]) -> Sample:
        """Return random inputs of these sizes and their outputs. Raises InputError if the model cannot run on them."""
        sample = self._draw_sample(dict(sizes), _DISTRIBUTIONS)
        if isinstance(sample, InputError):
            raise sample
        return sample

    def long_sample(self, symbol: str, size: int) -> Sample | None:
        """Return a sample with a long size of one symbol; None if the model cannot run there."""
        sample = self._draw_sample({**self._symbols, symbol: size}, _CALM)
        return None if isinstance(sample, InputError) else sample

    def others(self, count: int, turn: int = 100) -> list[Sample]:
        """Return samples of the example's sizes, drawn independently; fewer than `count` if the model refuses some.

        Another `turn` draws other samples.
        """
        drawn = (self._draw_sample(self._symbols, _DISTRIBUTIONS, draw_turn) for draw_turn in range(turn, turn + count))
        return [sample for sample in drawn if not isinstance(sample, InputError)]

    def inputs_at(self, sizes: Mapping[str, int]) -> tuple[Array, ...] | None:
        """Return random inputs without running the model; None for impossible or huge sizes."""
        if any(extent < 0 for shape in self._extents(sizes) for extent in shape) or self._elements(sizes) > _HUGE:
            return None
        arrays = self._random(sizes, Distribution.ALIKE, 0)
        return tuple(np.ascontiguousarray(a).reshape(a.shape) for a in arrays)

    def _user_sample(self, index: int, call: ModelInputs, size_range: SizeRange | None) -> Sample:
        sizes = sizes_of(self._shapes, call.tensors)
        if size_range is not None and sizes.keys() >= size_range.bounds.keys() and not size_range.holds(sizes):
            raise InputError(f"inputs[{index}] has {ranges_text([sizes])}, outside the range {size_range}")
        return self._sample(call, call.tensors, sizes, f"inputs[{index}]")

    def _at_wanted(self, assignments: Sequence[Mapping[str, int]], size_range: SizeRange | None) -> list[Sample]:
        """Return a sample at each of these sizes; other symbols have the example's size."""
        sampled = []
        for assignment in assignments:
            if unknown := sorted(set(assignment) - set(self._symbols)):
                symbols = ", ".join(self._symbols) or "none"
                raise InputError(f"sizes: there is no dynamic axis {', '.join(unknown)}; there are {symbols}")
            sizes = {**self._symbols, **assignment}
            if size_range is not None and not size_range.holds(sizes):
                raise InputError(f"sizes: {ranges_text([sizes])} is outside the range {size_range}")
            sampled.append(self.sample_at(sizes))
        return sampled

    def _further(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return samples of the example's sizes, independent of it, with which as many outputs as possible change.

        If an output changes with the user's calls, none is drawn: the user knows best which inputs the model accepts.
        """
        further: list[Sample] = []
        still = unmoved_outputs(samples)
        if len(still) < len(self.example.expected):
            return []
        for turn, distributions in enumerate((_DISTRIBUTIONS, *((distribution,) for distribution in _BOLDER))):
            is_wanted = not further or (
                distributions == (Distribution.SIGNED,) and self._function is None and self._draws.has_one_sign
            )
            if not is_wanted and not still:
                continue
            drawn = self._draw_sample(self._symbols, distributions, turn)
            if isinstance(drawn, InputError) or _equal(drawn.inputs, self.example.inputs):
                continue
            left = unmoved_outputs([*samples, *further, drawn])
            if not further or ((is_wanted or len(left) < len(still)) and not overflows(drawn, self.example)):
                further.append(drawn)
                still = left
                self._signed = self._signed or distributions[0] in _BOLDER
        return further

    def _samples_at_other_sizes(self, size_range: SizeRange | None, dims: Iterable[Dim]) -> list[Sample]:
        samples, seen = [], {tuple(sorted(self._symbols.items()))}
        turns = _with_ends(edges(dims), size_range, self._symbols)
        for assignment in size_assignments(self._symbols, None if size_range is None else size_range.bounds, turns):
            at_edge = any(size in turns.get(name, ()) for name, size in assignment.items())
            for sizes in [assignment] if at_edge else _larger(assignment, self._symbols):
                key = tuple(sorted(sizes.items()))
                if key in seen:
                    break
                if size_range is not None and not size_range.holds(sizes):
                    continue
                drawn = self._draw_sample(sizes, _DISTRIBUTIONS)
                if isinstance(drawn, InputError):
                    continue
                samples.append(drawn)
                seen.add(key)
                break
        code = self._code if self._symbols else None
        if code is not None and reads_sizes(code):
            inputs = self._inputs.tensors
            code_sizes = CodeSizes(
                code, self._run, self._try_sizes, self._elements, inputs, self._shapes, self._symbols, size_range
            )
            samples += code_sizes.samples(self.example, samples)
        return samples

    def _try_sizes(self, sizes: Mapping[str, int]) -> Sample | None:
        """Return a sample of these sizes; None if the model cannot run there."""
        drawn = self._draw_sample(dict(sizes), _DISTRIBUTIONS)
        return None if isinstance(drawn, InputError) else drawn

    def _run(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Run the model on tensors instead of the example's."""
        args, kwargs = self._inputs.arguments_with(tensors)
        return self._model.run(args, kwargs)

    def sample_of(self, arrays: Sequence[Array], sizes: Mapping[str, int] | None = None, label: str = "") -> Sample:
        """Return the sample of these inputs. Raises InputError if the model refuses them."""
        return self._sample(self._inputs, [torch.from_numpy(np.array(array)) for array in arrays], sizes or {}, label)

    def _extents(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        return [tuple(evaluate(d, sizes) for d in shape) for shape in self._shapes]

    def _elements(self, sizes: Mapping[str, int]) -> int:
        """Return the number of elements of all inputs."""
        return sum(map(math.prod, self._extents(sizes)))

    def _draw_sample(
        self, sizes: dict[str, int], distributions: Iterable[Distribution], turn: int = 0
    ) -> Sample | InputError:
        """Return the sample of the first distribution on which the model runs as on its example, or the last sample."""
        sample: Sample | None = None
        problem: InputError | None = None
        tried: list[list[Array]] = []
        for distribution in distributions:
            arrays = self._arrays(sizes, distribution, turn)
            if arrays is None:
                return InputError(f"the function of `inputs` has none at {ranges_text([sizes])}")
            if any(_equal(arrays, earlier) for earlier in tried):
                continue
            label = ", ".join([*(f"{name}={size}" for name, size in sizes.items()), f"drawn {distribution.value}"])
            try:
                with self._domain:
                    sample = self.sample_of(arrays, sizes, label)
            except InputError as wrong:
                tried.append(arrays)
                problem = problem or wrong
                continue
            if distribution is Distribution.ALIKE and has_grown(sample, self.example):
                continue  # the next distribution draws the same if no float is further out
            if not overflows(sample, self.example):
                break
            tried.append(arrays)
        return sample if sample is not None else problem or InputError("there is nothing to draw")

    def _arrays(self, sizes: Mapping[str, int], distribution: Distribution, turn: int = 0) -> list[Array] | None:
        """Return inputs of these sizes; None if the user's function returns None."""
        if self._function is not None:
            return self._function.arrays(sizes, (turn, distribution.value), self._shapes, self._inputs)
        return self._random(sizes, distribution, turn)

    def _random(self, sizes: Mapping[str, int], distribution: Distribution, turn: int) -> list[Array]:
        digest = hashlib.sha256(repr((sorted(sizes.items()), turn)).encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return self._draws.draw(self._extents(sizes), rng, distribution)

    def _runs(self, arrays: Sequence[Array]) -> bool:
        try:
            self.sample_of(arrays)
        except InputError:
            return False
        return True

    def _sample(
        self, call: ModelInputs, tensors: Sequence[torch.Tensor], sizes: Mapping[str, int], label: str
    ) -> Sample:
        args, kwargs = call.arguments_with([t.detach().clone() for t in tensors])  # a model may write into its inputs
        try:
            with torch.no_grad():
                outputs = self._model.run(args, kwargs)
        except Exception as cause:
            raise refusal_to_run(cause, self._model.name, label) from cause
        return Sample(tuple(map(_array, tensors)), tuple(map(_array, tensors_of(outputs))), dict(sizes), label)


def double_outputs(
    run: Callable[[tuple[Any, ...], dict[str, Any]], Any], call: ModelInputs, sample: Sample, *, double: bool = True
) -> list[Any]:
    """Return the outputs for a sample of a model with float64 weights, to tell rounding from a wrong graph.

    Without `double` the inputs stay as they are.
    """
    tensors = [torch.from_numpy(np.array(array)) for array in sample.inputs]
    args, kwargs = call.arguments_with([t.double() if double and t.is_floating_point() else t for t in tensors])
    with torch.no_grad():
        return [_array(t) for t in tensors_of(run(args, kwargs))]


def _equal(arrays: Sequence[Array], others: Sequence[Array]) -> bool:
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(arrays, others, strict=True))


def _with_ends(
    turns: Mapping[str, list[int]], size_range: SizeRange | None, symbols: Mapping[str, int]
) -> dict[str, list[int]]:
    """Return the edges, and each symbol's largest size, unless that is much larger than the example."""
    extended_turns = {name: list(sizes) for name, sizes in turns.items()}
    for name, (_, high) in (size_range.bounds if size_range is not None else {}).items():
        if high is not None and name in symbols and high <= largest(symbols[name]):
            extended_turns.setdefault(name, []).append(high)
    return extended_turns


def sizes_of(shapes: Sequence[Shape], tensors: Sequence[torch.Tensor]) -> dict[str, int]:
    """Return the sizes of the symbols that are the extent of an axis, read from these tensors."""
    return {
        extent.name: int(size)
        for shape, tensor in zip(shapes, tensors, strict=True)
        for extent, size in zip(shape, tensor.shape, strict=False)
        if isinstance(extent, sympy.Symbol)
    }


def _larger(sizes: dict[str, int], traced: dict[str, int]) -> list[dict[str, int]]:
    """Return these sizes, and larger ones for symbols that differ from the example: a net may need multiples of 8."""

    def grow(name: str, size: int, step: int) -> int:
        if size == traced[name]:
            return size
        return min(size + step, traced[name]) if size < traced[name] else size + step

    return [{n: grow(n, s, step) for n, s in sizes.items()} for step in range(_GROWTH)]


def _array(tensor: torch.Tensor) -> Any:
    try:
        return np.ascontiguousarray(tensor.detach().cpu().numpy()).reshape(tuple(tensor.shape))
    except TypeError as cause:
        raise CaptureError(f"a tensor of dtype {tensor.dtype} cannot be expressed in NNEF") from cause
