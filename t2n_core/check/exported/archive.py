"""An exported archive with its target, capture and reference, as checks and searches use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sympy
import torch

from t2n_core.check.reference import Reference
from t2n_core.inference_target import InferenceTarget
from t2n_core.lowering.target_lowering import TargetLowering
from t2n_core.nnef.graph import Graph, constant_outputs
from t2n_core.nnef.sizes.dims import Shape
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.op.dtypes import numpy_dtype
from t2n_core.op.stored.source import StoredWeights
from t2n_core.parity.judging.float16_level import LARGEST
from t2n_core.parity.judging.interface import Interface, Port
from t2n_core.parity.judging.judgement import FLOAT16_LEVEL, ORIGINAL, STORED, Judgement
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.state_pairs import StatePair
from t2n_core.torch_graph.capture.tracer import CapturedModel
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.pytree.structure import leaves_with_path
from t2n_core.torch_graph.frontend.results import Results
from t2n_core.torch_graph.frontend.state.first_call import zeros_of
from t2n_core.torch_graph.frontend.state.state import ModelState


@dataclass(slots=True, repr=False)
class ExportedArchive:
    """An archive on disk, with its target, capture and reference."""

    archive: Path
    target: InferenceTarget
    graph: Graph
    times: dict[str, float]
    """Seconds: capture, lower, write."""
    reference: Reference
    """Samples of PyTorch for the capture of the archive."""
    lowering: TargetLowering
    """Writes parts of the same capture for the same target."""
    notes: tuple[str, ...]
    """A line for each option that had no effect or only a partial one, and for each result that is not a tensor."""
    declared_outputs: tuple[str, ...] = field(default=(), kw_only=True)
    """The names of the outputs in the order of the model's results, before anything is written."""
    _long: tuple[dict[str, Sample], dict[str, str]] | None = field(default=None, init=False)

    @property
    def captured(self) -> CapturedModel:
        """Return the capture of the archive."""
        return self.reference.captured

    @property
    def input_names(self) -> list[str]:
        return [v.name for v in self.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        return [v.name for v in self.graph.outputs]

    @property
    def interface(self) -> Interface:
        """Return the interface that the export declares: names of the call, data types and axes of the capture.

        A hook of the target that may edit the graph declares what it leaves.
        """
        if self.target.edits_graph:
            inputs, outputs = self.graph.inputs, self.graph.outputs
            return Interface(
                tuple(_port(v.name, v.dtype, v.shape) for v in inputs),
                tuple(_port(v.name, v.dtype, v.shape) for v in outputs),
            )
        captured, names = self.captured.graph, self.reference.inputs.names
        named_inputs = zip(names, captured.inputs, strict=True)
        returned = zip(self.declared_outputs, captured.outputs, strict=True)
        return Interface(
            tuple(_port(name, numpy_dtype(v.dtype), v.shape) for name, v in named_inputs),
            tuple(_port(name, numpy_dtype(v.dtype), v.shape) for name, v in returned),
            only_sizes={name: least for name, (least, most) in self.range.bounds.items() if least == most},
        )

    @property
    def state(self) -> tuple[StatePair, ...]:
        """Return the inputs that hold state, with the outputs that are their next values."""
        state = self.reference.source.state
        if state is None:
            return ()
        return state_pairs(state, self.reference.inputs, self.captured.results, self.input_names, self.output_names)

    @property
    def planned_level(self) -> str:
        """Return the level that the export requires: `float16` if it follows a precision plan, otherwise ''."""
        return "" if self.target.writing.precision is None else FLOAT16_LEVEL

    @property
    def own_level(self) -> str:
        """Return the level of a check without a tolerance."""
        return self.planned_level or self.target.check_io_tolerance.value

    @property
    def constant_outputs(self) -> frozenset[str]:
        """Return the names of the outputs that depend on no input element."""
        return constant_outputs(self.graph)

    @property
    def samples(self) -> list[Sample]:
        """Return inputs and PyTorch's outputs with the weights of the archive. Raises InputError."""
        return [*self.reference.samples(self._sampled_range, self.stored), *self.long_samples.values()]

    @property
    def long_samples(self) -> dict[str, Sample]:
        """Return the samples of a long size, by the axis for which it matters; they are the last ones."""
        return self._find_long_sizes()[0]

    @property
    def long_sizes(self) -> dict[str, str]:
        """Return a line for each axis of which a long size matters: the size in the samples, or why there is none."""
        return self._find_long_sizes()[1]

    def _find_long_sizes(self) -> tuple[dict[str, Sample], dict[str, str]]:
        """Return the samples of long sizes, and the lines that describe them.

        An archive that is judged against float64 is not judged where PyTorch's float32 is too far from it.
        """
        if self._long is not None:
            return self._long
        self._long = samples, lines = {}, {}
        for long, sample in self.reference.long_samples(self.graph, self._sampled_range, self.stored):
            left_out = "" if long.size is None or sample is not None else "the model does not run there"
            if sample is not None and self.planned_level and self.reference.is_off(sample, LARGEST / 2):
                left_out = "PyTorch's float32 is too far from float64 there"
            if sample is not None and not left_out:
                samples[long.symbol] = sample
            lines[long.symbol] = long.describe(left_out)
        return self._long

    @property
    def _sampled_range(self) -> SizeRange:
        return self.graph.sizes if self.graph.sizes.bounds else self.captured.range

    @property
    def range(self) -> SizeRange:
        """Return the sizes of the dynamic axes for which the archive is valid."""
        return self.graph.sizes

    @property
    def outside(self) -> list[Sample]:
        """Return inputs of sizes just outside the range, which the engine has to refuse, without expected outputs."""
        if not self.graph.guarded:
            return []
        samples = []
        for sizes in self.range.just_outside(self.captured.symbols):
            inputs = self.reference.inputs_at(sizes)
            if inputs is not None:
                samples.append(Sample(inputs, (), sizes, "outside"))
        return sorted(samples, key=lambda sample: any(not array.size for array in sample.inputs))

    def sample_at(self, sizes: Mapping[str, int]) -> Sample:
        """Return a sample at these sizes of all dynamic axes. Raises InputError if the model cannot run there."""
        return self.reference.sample_at(sizes, self.stored)

    @property
    def drawn(self) -> dict[str, str]:
        """Return how the random inputs of samples were drawn, by the names of the inputs."""
        return self.reference.distributions(self.stored)

    @property
    def stored(self) -> StoredWeights:
        """Return the labels of the weights with another storage format than in the model, with the stored weights."""
        return frozenset(self.graph.stored.items())

    @property
    def stored_text(self) -> str:
        """Return the count of weights per storage format as text: `24 as int8, 1 as float16`; '' without any."""
        formats = Counter(weight.format for _, weight in self.stored)
        return ", ".join(f"{count} as {name}" for name, count in formats.most_common())

    def for_metrics(self, samples: Sequence[Sample], criteria: Judgement) -> list[Sample]:
        """Return samples with the outputs that the metrics of criteria compare with. Raises InputError."""
        if criteria.in_float64:
            return self.reference.in_float64(samples)
        if self.stored and criteria.metrics and criteria.reference == ORIGINAL:
            return self.reference.with_own_weights(samples)
        return list(samples)

    def metric_reference(self, criteria: Judgement) -> str:
        """Return the weights that metrics compare with, as messages name them; '' if the archive has the model's."""
        if not self.stored:
            return ""
        return "the weights as stored" if criteria.reference == STORED else "the model's own weights"

    def check_request(self, criteria: Judgement, timeout: float = 60.0) -> CheckRequest:
        """Return a request to check this archive by these criteria; `timeout` is in seconds.

        Raises InputError if the model cannot compute the samples.
        """
        is_plain = not (criteria.in_float64 or self.planned_level or self.target.pulse is not None)
        return CheckRequest(
            self.archive,
            self.samples,
            self.output_names,
            criteria,
            timeout,
            self.range,
            self.outside,
            self.constant_outputs,
            carries=self.target.pulse is not None,
            state=[(self.input_names.index(pair.input), self.output_names.index(pair.output)) for pair in self.state],
            calls=self.reference.calls(self.samples, self.range, self.stored) if is_plain else (),
            model=lambda inputs: self.reference.answer(inputs, self.stored),
            interface=self.interface,
            metric_reference=self.metric_reference(criteria),
        )


def _port(name: str, dtype: np.dtype[Any], shape: Shape) -> Port:
    extents = (size.name if isinstance(size, sympy.Symbol) else str(size) for size in shape)  # its str takes longer
    return Port(name, dtype.name, tuple(extents))


def state_pairs(
    state: ModelState, inputs: ModelInputs, results: Results, input_names: Sequence[str], output_names: Sequence[str]
) -> tuple[StatePair, ...]:
    """Return the pairs of a graph with these names of inputs and outputs, in the order of the inputs.

    An input that a call does not change, or that the graph does not read, is in no pair.
    """
    tensors = {tensor.input: tensor for tensor in state.tensors}
    paths = [path for path, leaf in leaves_with_path((inputs.args, inputs.kwargs)) if isinstance(leaf, torch.Tensor)]
    after = {path[0]: name for path, name in zip(results.paths, output_names, strict=True)}
    pairs = []
    for path, name in zip(paths, inputs.names, strict=True):
        tensor = tensors.get(path[-1]) if path[:1] == (1,) and path[1] in state.examples else None
        if tensor is not None and not tensor.is_kept and name in input_names:
            initial = np.asarray(zeros_of(tensor).numpy())  # the example's state is not an initial state
            pairs.append(StatePair(name, after[tensor.output], initial, tensor.growing))
    return tuple(pairs)
