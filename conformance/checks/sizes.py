"""How a cell of suite `sizes` is judged; what PyTorch computes is shared by its engines and traced sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from conformance.cases.sizes.patterns import NETS
from t2n_core.check.sampling.draws import Distribution, Draws
from t2n_core.export.model import ModelExport
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.samples import Sample
from t2n_core.parity.sizes import check_sizes
from t2n_core.torch_graph.frontend.results import tensors_of

SECONDS_TO_RUN = 10.0
RANGE = "range"
"""The fact that says which sizes an archive is declared for."""

NARROWED = "SmallerRange"
"""Error class of an archive that is right, for fewer sizes than asked for."""


@lru_cache(maxsize=1)
def samples_of(name: str) -> list[Sample]:
    """Return what PyTorch computes at all sizes at which it runs."""
    net, samples = NETS[name], list[Sample]()
    for sizes in [*net.traced, *net.judged()]:
        if not any(sizes == sample.sizes for sample in samples[: len(net.at)]):
            with suppress(Exception):
                samples.append(_run(name, net.arguments(name, sizes), sizes))
    return samples


def _run(name: str, inputs: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> Sample:
    with torch.no_grad():
        outputs = tensors_of(NETS[name].module(name)(*(x.clone() for x in inputs)))
    arrays = (tuple(t.numpy().copy() for t in group) for group in (inputs, outputs))
    return Sample(*arrays, dict(sizes))


@lru_cache(maxsize=8)
def _twin(name: str, index: int) -> Sample | None:
    """Return other inputs of the sizes of a sample; None if PyTorch cannot run them."""
    sample = samples_of(name)[index]
    draws = Draws(sample.inputs, lambda _: False)
    for distribution in (Distribution.SIGNED, Distribution.OWN):
        drawn = draws.draw([x.shape for x in sample.inputs], np.random.default_rng(index), distribution)
        with suppress(Exception):
            return _run(name, [torch.from_numpy(np.array(x)) for x in drawn], sample.sizes)
    return None


@lru_cache(maxsize=1)
def export_of(name: str, traced: tuple[int, ...]) -> ModelExport:
    """Return the export of a pattern traced at these sizes, which the cells of all engines share."""
    net = NETS[name]
    inputs = net.arguments(name, dict(zip(net.symbols, traced, strict=True)))
    return ModelExport(net.module(name), dict(zip("xyz", inputs, strict=False)), dynamic_axes=net.axes)


def check_result(result: Any, name: str, traced: Mapping[str, int], timeout: float) -> Outcome:
    """Return the outcome of an archive at all sizes of its pattern, the traced ones first."""
    of_pattern = samples_of(name)
    samples = sorted(of_pattern, key=lambda sample: sample.sizes != traced)
    if hasattr(result, "exporter"):  # of another exporter
        return result.check_sizes(samples, timeout).with_times(result.times)
    inside = [index for index, sample in enumerate(of_pattern) if accepts(result, sample.sizes)]
    largest = max(inside, key=lambda index: sum(x.size for x in of_pattern[index].expected), default=None)
    twin = None if largest is None else _twin(name, largest)
    samples += [] if twin is None else [twin]
    outcome = check_sizes(
        result.target.engine(),
        result.archive,
        samples,
        accepts=lambda sizes: accepts(result, sizes),
        output_names=result.output_names,
        timeout=timeout,
    ).with_times(result.times)
    outcome = replace(outcome, facts={**outcome.facts, RANGE: str(range_of(result))})
    return outcome if NETS[name].decides or not outcome.passed else _complete(outcome, name, result)


def _complete(outcome: Outcome, name: str, result: Any) -> Outcome:
    """Return a refusal if the range leaves out sizes at which PyTorch runs and by which the model does not decide."""
    missing = tuple(s for s in outcome.sizes if NETS[name].declares(s) and not accepts(result, s))
    if not missing:
        return outcome
    message = f"the archive holds for {range_of(result)} alone, at {len(outcome.sizes) - len(missing)} of these sizes"
    error = ErrorInfo.of(Stage.LOWER, NARROWED, message)
    return replace(outcome, status=Status.UNSUPPORTED, stage=Stage.LOWER, error=error, failed_sizes=missing)


def accepts(result: Any, sizes: Mapping[str, int]) -> bool:
    """Return whether these sizes are of the range that the archive declares."""
    return range_of(result).holds(sizes)


def range_of(result: Any) -> SizeRange:
    """Return the range of an archive, which its guard keeps."""
    return result.graph.sizes
