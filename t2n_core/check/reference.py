"""The reference: PyTorch's results for one capture of a model, at sizes within a range."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from t2n_core.check.sampling.calls import run_calls
from t2n_core.check.sampling.domains import domain_of
from t2n_core.check.sampling.input_function import InputFunction
from t2n_core.check.sampling.long_sizes import LongSize, long_sizes
from t2n_core.check.sampling.sampler import Runnable, Sampler, double_outputs
from t2n_core.errors import InputError
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.op.stored.source import StoredSource, StoredWeights
from t2n_core.parity.judging.float16_level import peak
from t2n_core.parity.samples import Sample
from t2n_core.rewriter.context import without_rewrites
from t2n_core.torch_graph.capture.tracer import CapturedModel
from t2n_core.torch_graph.frontend.inputs import ModelInputs, bind_inputs
from t2n_core.torch_graph.frontend.sources import Source

_LOG = logging.getLogger(__name__)

_NONE: StoredWeights = frozenset()


@dataclass(slots=True)
class Reference:
    """Samples of inputs and of PyTorch's outputs, for one capture of a model."""

    source: Source
    inputs: ModelInputs
    captured: CapturedModel
    extra_inputs: Callable[[], Iterable[Any]]
    """Returns further arguments, like `args` of an export."""
    kwargs: Mapping[str, Any] | None
    times: dict[str, float]
    """Receives the seconds of the model's runs."""
    function: Callable[[Mapping[str, int]], Any] | None = None
    """Returns inputs for sizes, instead of random inputs."""
    sizes: Sequence[Any] = (...,)
    """Sizes to check at besides the example's; an ellipsis stands for the automatic ones."""
    _samples: dict[tuple[str, StoredWeights], list[Sample]] = field(default_factory=dict, repr=False)
    _calls: dict[tuple[str, StoredWeights], list[Sample]] = field(default_factory=dict, repr=False)
    _long: dict[tuple[str, int, StoredWeights], Sample | None] = field(default_factory=dict, repr=False)
    _samplers: dict[StoredWeights, Sampler] = field(default_factory=dict, repr=False)

    def samples(self, valid_range: SizeRange | None = None, stored: StoredWeights = _NONE) -> list[Sample]:
        """Return samples at sizes within a range, by default the capture's.

        `stored` are the weights to use as the archive stores them. Raises InputError.
        """
        valid_range = self.captured.range if valid_range is None else valid_range
        key = (str(valid_range), stored)
        if key not in self._samples:
            graph = self.captured.graph
            extra = [self._bind(more) for more in self.extra_inputs()]
            dims = [*(d for value in graph.data_nodes for d in value.shape), *graph.bounds()]
            with without_rewrites(), record_time(self.times, "reference"):
                self._samples[key] = self._sampler(stored).samples(extra, valid_range, dims, self.sizes)
        return self._samples[key]

    def long_samples(
        self, written: Graph, valid_range: SizeRange, stored: StoredWeights = _NONE
    ) -> list[tuple[LongSize, Sample | None]]:
        """Return a sample at a long size of each axis for which it matters, as far as the written graph affords it.

        There is none where the size costs too much or the model does not run, and for a check at other sizes only.
        """
        symbols = self.captured.symbols
        if ... not in self.sizes or not symbols:
            return []
        choices = long_sizes(self.captured.graph, written, valid_range, symbols)
        return [
            (choice, None if choice.size is None else self._long_sample(choice.symbol, choice.size, stored))
            for choice in choices
        ]

    def _long_sample(self, symbol: str, size: int, stored: StoredWeights) -> Sample | None:
        key = (symbol, size, stored)
        if key not in self._long:
            with without_rewrites(), record_time(self.times, "long sizes"):
                self._long[key] = self._sampler(stored).long_sample(symbol, size)
        return self._long[key]

    def is_off(self, sample: Sample, most: float) -> bool:
        """Return whether float32 in PyTorch is farther from float64 than `most`, as a share of the largest output.

        No archive in float32 or float16 is nearer to float64 there.
        """
        (rerun,) = self.in_float64([sample], keep=True)
        return peak(rerun.reference, rerun.expected) > most

    def calls(self, samples: Sequence[Sample], valid_range: SizeRange, stored: StoredWeights = _NONE) -> list[Sample]:
        """Return calls in a row within a range, each with the state the previous call returned; see `run_calls`."""
        key = (str(valid_range), stored)
        if key not in self._calls:
            with without_rewrites():
                self._calls[key] = run_calls(self.source, self.inputs, self.captured, samples, valid_range, stored)
        return self._calls[key]

    def in_float64(self, samples: Sequence[Sample], *, keep: bool = False) -> list[Sample]:
        """Return samples with the outputs of the model computed in float64, with its own weights.

        These, rounded once, become the expected outputs; with `keep` those stay as they are. A float32 model that
        cannot run in float64 runs as it is: its errors are far below float16's. Raises InputError if a float16 model
        cannot run in float64.
        """
        rerun = []
        for sample in samples:
            with without_rewrites():
                double = tuple(self._in_float64(sample))
            rounded = tuple(a.astype(b.dtype) for a, b in zip(double, sample.expected, strict=True))
            rerun.append(replace(sample, expected=sample.expected if keep else rounded, original=double))
        return rerun

    def with_own_weights(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return samples with the outputs of the model with its own weights, for metrics. Raises InputError."""
        return [replace(sample, original=self.answer(sample.inputs)) for sample in samples]

    def _in_float64(self, sample: Sample) -> list[Any]:
        with suppress(Exception):  # a model that checks a dtype or reads bits, an operator that runs under no mode
            return double_outputs(self.source.run_in_float64, self.inputs, sample)
        try:
            return double_outputs(self.source.run_with_float64_weights, self.inputs, sample)
        except Exception as cause:
            if any(weight.dtype.itemsize < 4 for weight in self.source.weights.values() if weight.is_floating_point()):
                raise InputError(f"{self.source.name} does not run in float64: {cause}") from cause
            return double_outputs(self.source.run, self.inputs, sample, double=False)

    def distributions(self, stored: StoredWeights = _NONE) -> dict[str, str]:
        """Return how the random inputs of samples were drawn, by the names of the inputs."""
        with without_rewrites():
            return self._sampler(stored).drawn

    def sample_at(self, sizes: Mapping[str, int], stored: StoredWeights = _NONE) -> Sample:
        """Return random inputs with these sizes of all dynamic axes, and PyTorch's outputs.

        Raises InputError if the model cannot run at these sizes.
        """
        with without_rewrites():
            return self._sampler(stored).sample_at(sizes)

    def answer(self, inputs: Sequence[Any], stored: StoredWeights = _NONE) -> tuple[Any, ...]:
        """Return PyTorch's outputs for these inputs. Raises InputError if the model refuses them."""
        with without_rewrites():
            return self._sampler(stored).sample_of(inputs).expected

    def others(self, count: int, turn: int) -> list[Sample]:
        """Return samples of the example's sizes other than `samples`; each `turn` draws different ones."""
        with without_rewrites():
            return self._sampler(_NONE).others(count, 100 * (1 + turn))

    def inputs_at(self, sizes: Mapping[str, int]) -> tuple[Any, ...] | None:
        """Return random inputs with these sizes of all dynamic axes; None if there are none, or they are huge."""
        with without_rewrites():
            return self._sampler(_NONE).inputs_at(sizes)

    def _sampler(self, stored: StoredWeights) -> Sampler:
        if stored not in self._samplers:
            shapes = [value.shape for value in self.captured.graph.inputs]
            function = None if self.function is None else InputFunction(self.function, self._bind)
            domain = domain_of(self.captured.graph)
            self._samplers[stored] = Sampler(
                self._model(stored), self.inputs, shapes, self.captured.symbols, function, self.source.module, domain
            )
        return self._samplers[stored]

    def _model(self, stored: StoredWeights) -> Runnable:
        return StoredSource(self.source, stored) if stored else self.source

    def _bind(self, arguments: Any) -> ModelInputs:
        return bind_inputs(self.source, arguments, self.kwargs, self.inputs.names)

    @property
    def has_samples(self) -> bool:
        """Return whether the model has run on its example already."""
        return bool(self._samples)


@contextmanager
def record_time(times: dict[str, float], stage: str) -> Iterator[None]:
    """Store the seconds that a block takes under the name of its stage."""
    start = time.perf_counter()
    try:
        yield
    finally:
        times[stage] = time.perf_counter() - start
        _LOG.debug("%s took %.3f s", stage, times[stage])
