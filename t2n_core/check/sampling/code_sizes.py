"""Choose sizes to check at from the conditions on sizes in a model's Python code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from t2n_core.check.sampling.both_sides import BothSides
from t2n_core.check.sampling.recorded_run import Question, questions
from t2n_core.check.sampling.recorded_sizes import Run, leaves_open, run_of, varying
from t2n_core.nnef.sizes.dims import Shape
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.parity.samples import Sample
from t2n_core.torch_graph.proofs.compared_numbers import compared_numbers, sizes_near

_Sizes: TypeAlias = Mapping[str, int]
_LARGE = 512
"""A largest size that is worth a run of the model, even if the example is small."""
_FEW = 1 << 14
"""Elements of inputs that cost little, even if the example has far fewer."""
_ASKED = 1 << 20
"""Most elements of inputs at which the other side of a decision is searched."""
_DECIDED = 8
"""Number of sizes that are tried next to integers that the model's code compares with."""


def largest(traced: int) -> int:
    """Return the largest size that is worth a run of the model."""
    return max(_LARGE, 4 * traced)


@dataclass(frozen=True, slots=True)
class CodeSizes:
    """The search for sizes that the code of one model may treat differently."""

    code: torch.nn.Module
    run: Callable[[Sequence[torch.Tensor]], Any]
    """Runs the model on tensors instead of the example's."""
    sample: Callable[[_Sizes], Sample | None]
    """Returns a sample of these sizes; None if the model cannot run there."""
    elements: Callable[[_Sizes], int]
    """Returns the number of elements of all inputs."""
    inputs: Sequence[torch.Tensor]
    shapes: Sequence[Shape]
    symbols: _Sizes
    """The sizes of the example."""
    held: SizeRange | None

    def samples(self, example: Sample, others: Sequence[Sample]) -> list[Sample]:
        """Return further samples; an empty list if the code has no condition on a size that varies."""
        runs = [run_of(self.code, self.run, example)]
        if not runs[0].notes:
            return []
        other = max(others, key=self._count_changed, default=None)
        if other is not None:
            runs.append(run_of(self.code, self.run, other))
            if not any(varying(runs)):
                return []
        near = self._near_compared_integers([example, *others])
        return [*near, *self._across(runs, [*others, *near], other)]

    def _near_compared_integers(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return samples of sizes next to the integers that the code compares with, if the model can run there."""
        near: list[Sample] = []
        seen = [sample.sizes for sample in samples]
        for sizes in sizes_near(compared_numbers(self.code), self.symbols):
            low = all(size >= 1 for size in sizes.values())
            if sizes in seen or not low or not self._is_worth(sizes) or not self._holds(sizes):
                continue
            seen.append(sizes)
            sample = self.sample(sizes)
            if sample is not None:
                near.append(sample)
            if len(near) >= _DECIDED:
                break
        return near

    def _across(self, runs: Sequence[Run], samples: Sequence[Sample], other: Sample | None) -> list[Sample]:
        """Return samples on the other side of the conditions that the model evaluates, if it can run there."""
        across: list[Sample] = []
        if not leaves_open(self.code, self.run, runs, samples):
            return across

        def ask(sizes: _Sizes) -> list[Question]:
            return questions(self.code, self.run, self.inputs, self.shapes, sizes)

        def is_allowed(sizes: _Sizes) -> bool:
            return self._holds(sizes) and 0 <= self.elements(sizes) <= _ASKED

        def take(sizes: _Sizes) -> bool:
            sample = self.sample(sizes)
            if sample is not None:
                across.append(sample)
            return sample is not None

        bounds = dict.fromkeys(self.symbols, (1, None)) if self.held is None else self.held.bounds
        tried: list[_Sizes] = [self.symbols, *(sample.sizes for sample in samples)]
        starts = [self.symbols]  # at sizes of 0 and 1 a model may have fewer conditions, or not run on fake tensors
        starts += [other.sizes] if other is not None and min(self.symbols.values()) < 2 else []
        BothSides(ask, is_allowed, take, bounds, tried).search(*starts)
        return across

    def _count_changed(self, sample: Sample) -> int:
        """Return the number of symbols with another size than in the example."""
        return sum(sample.sizes[name] != size for name, size in self.symbols.items())

    def _holds(self, sizes: _Sizes) -> bool:
        return self.held is None or self.held.holds(sizes)

    def _is_worth(self, sizes: _Sizes) -> bool:
        """Return whether a run at these sizes costs little."""
        if any(size > largest(self.symbols[name]) for name, size in sizes.items()):
            return False
        traced = self.elements(self.symbols)
        return self.elements(sizes) <= max(4 * traced, min(64 * traced, _FEW))
