"""Search a precision plan: as many operators in float16 as the engine confirms, those with the smallest effect first.

The effect of an operator on the outputs is estimated by gradients. The engine judges each try against the model in
float64, at half the level required of the archive, and once more with inputs that the search has not seen.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch

from t2n_core.check.reference import Reference
from t2n_core.errors import InputError, LowerError, Origin, SpecError, T2NError, UnsupportedOpsError
from t2n_core.inference_target.tract import TractNNEF
from t2n_core.lowering.target_lowering import TargetLowering
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.options.precision import PlanEntry, Precision, PrecisionPlan
from t2n_core.parity.judging.float16_level import LARGEST, peak
from t2n_core.parity.samples import Sample
from t2n_core.torch_graph.precision.apply import in_precision
from t2n_core.torch_graph.precision.growth import growing_units, unbounded
from t2n_core.torch_graph.precision.kernels import lacks_kernels
from t2n_core.torch_graph.precision.order import order_of
from t2n_core.torch_graph.precision.roundings import Rounding, roundings_of
from t2n_core.torch_graph.precision.rules import ruled_out
from t2n_core.torch_graph.precision.units import Unit, name_of, unit_of

UNSEEN: Final = 4
"""Number of inputs that confirm a plan."""
GOAL: Final = LARGEST / 2
_SEARCHED: Final = 4
"""Number of inputs at the start of a search."""
_TRIES: Final = 20
"""Plans that are tried before everything stays float32."""
_LUCK: Final = 4.0
"""Factor on the squared error allowed for the next plan, since the last error may be large by chance."""
_STEP: Final = (0.02, 0.8)
"""Smallest and largest share of the squared error that is allowed for the next plan."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan with the measurements of its search."""

    plan: PrecisionPlan
    units: int
    """Operators of modules, each counted once."""
    wide: int
    """Units that stay float32."""
    runs: int
    """Runs of the engine."""
    peak: float
    """Largest error with the inputs that the search had not seen, as a share of the largest value of the output."""
    full_error: float
    """The same with all possible units in float16, for the inputs of the search; infinite if that is not finite."""
    unseen: int
    """Inputs that the search had not seen."""
    release: str

    def describe(self) -> str:
        """Return the result in one line."""
        return (
            f"{self.units - self.wide} of {self.units} operators in float16; largest error {self.peak:.2g} of the "
            f"largest value ({self.full_error:.2g} with all), with {self.unseen} inputs that the search had not seen "
            f"in {self.release}, after {self.runs} runs"
        )


def find_plan(lowering: TargetLowering, reference: Reference) -> FoundPlan:
    """Return a plan for a capture in tract, confirmed by its engine; `lowering` has no plan.

    Raises InputError if there are too few inputs to confirm it with, or the model does not run in float64; EngineError
    if the engine does not run it even in float32.
    """
    with tempfile.TemporaryDirectory(prefix="t2n-") as folder:
        return _Search(lowering, reference, Path(folder)).run()


class _Search:
    def __init__(self, lowering: TargetLowering, reference: Reference, folder: Path) -> None:
        target = lowering.target
        assert isinstance(target, TractNNEF)
        self._target, self._reference, self._archive = target, reference, folder / "try.nnef.tar"
        self._graph, self._symbols = lowering.simplified(), reference.captured.symbols
        in_f32 = lacks_kernels() or target.writing.linear_accumulation_in_f32
        accumulation: Precision = "float32" if in_f32 else "float16"
        self._all_float16 = PrecisionPlan("float16", accumulation=accumulation)
        self._lowering = replace(lowering, target=target.with_precision(self._all_float16))
        unit_per_op = (unit_of(op) for op in self._graph.op_nodes)
        self._units = list(dict.fromkeys(unit for unit in unit_per_op if unit is not None))
        self._reasons: dict[Unit, str] = {}
        """Reasons for units to stay float32, independent of the error."""
        self._roundings: dict[int, list[Rounding]] = {}
        """Estimates for the samples at which a plan failed, by their index."""
        self._runs, self._whole = 0, math.nan
        reference_samples = self._reference.samples()
        seen = [*reference_samples[:_SEARCHED], *self._reference.others(max(0, _SEARCHED - len(reference_samples)), 0)]
        self._samples = self._reference.in_float64(seen)
        self._given = self._reference.in_float64([*reference_samples[_SEARCHED:], *self._long_samples(lowering)])

    def run(self) -> FoundPlan:
        self._reasons |= growing_units(self._graph, self._beyond_samples())
        for sample in self._samples:
            self._reasons |= {**ruled_out(self._graph, _tensors(sample), sample.sizes), **self._reasons}
        share = passing_share = failed = 1.0
        in_float16, best = set(self._units), None
        for turn in range(_TRIES):
            samples = len(self._samples)
            error, tried = self._try_units(in_float16, turn)
            if tried is not None:
                best, passing_share = tried, share
            else:
                failed = share
                best = best if len(self._samples) == samples else None  # it must also hold for the new samples
            if best is None:
                share *= min(max(_LUCK * (GOAL / error) ** 2, _STEP[0]), _STEP[1])
            elif passing_share >= _STEP[1] * failed:
                return best
            else:
                share = math.sqrt(passing_share * failed)
            before, in_float16 = in_float16 - self._reasons.keys(), self._within(share)
            while in_float16 == before and in_float16:
                if best is not None:
                    return best
                share *= _STEP[1]
                in_float16 = self._within(share)
        if best is not None:
            return best
        error, tried = self._try_units(set(), _TRIES)
        if tried is not None:
            return tried
        raise InputError(
            f"no precision plan: in float32 the largest error in {self._target} is {error:.2g}",
            hint="the archive is wrong, or the model is too sensitive for float32: check precision=None first",
        )

    def _long_samples(self, lowering: TargetLowering) -> list[Sample]:
        """Return the samples of long sizes that an archive in float32 affords, and at which float32 is near float64."""
        captured = self._reference.captured
        written = lowering.write(self._graph, [f"output_{index}_of_try" for index in range(len(self._graph.outputs))])
        long_samples = self._reference.long_samples(written, captured.range)
        return [
            sample for _, sample in long_samples if sample is not None and not self._reference.is_off(sample, GOAL / 2)
        ]

    def _beyond_samples(self) -> set[str]:
        """Return the symbols whose range goes beyond the sizes of all samples."""
        samples = [*self._samples, *self._given]
        largest = {
            name: max(sample.sizes.get(name, size) for sample in samples) for name, size in self._symbols.items()
        }
        return unbounded(self._reference.captured.range, largest)

    def _within(self, share: float) -> set[Unit]:
        """Return the units for float16 with this share, below 1, of the squared error of all units in float16."""
        free = [unit for unit in self._units if unit not in self._reasons]
        order = order_of(free, [rounding for mine in self._roundings.values() for rounding in mine])
        total_error = max((error for _, error in order), default=0.0)
        return {unit for unit, error in order if error <= share * total_error and error < total_error}

    def _try_units(self, in_float16: set[Unit], turn: int) -> tuple[float, FoundPlan | None]:
        """Return the largest error with units in float16, and the plan if it holds.

        It has to hold for the samples, and for others, which become samples of the search if it does not. The effect of
        units is then estimated for the worst one.
        """
        self._write(in_float16)
        errors, unseen = self._errors(self._samples), []
        if max(errors) <= GOAL:
            unseen = [*self._given, *self._reference.in_float64(self._reference.others(UNSEEN, 1 + turn))]
            if len(unseen) < UNSEEN:
                raise InputError(
                    f"precision='auto' needs {UNSEEN} inputs beside those of the search, and the model accepts only "
                    f"{len(unseen)} random ones",
                    hint="give more with extra_inputs=, or a plan",
                )
            errors += self._errors(unseen)
        if turn == 0:
            self._whole = max(errors)
        if max(errors) <= GOAL:
            return max(errors), self._found_plan(in_float16, max(errors[-len(unseen) :]), len(unseen))
        if unseen:
            self._samples, self._given = [*self._samples, *unseen], []
        worst = errors.index(max(errors))
        if worst not in self._roundings:
            sample = self._samples[worst]
            self._roundings[worst] = roundings_of(self._graph, _tensors(sample), sample.sizes)
        return max(errors), None

    def _write(self, in_float16: set[Unit]) -> None:
        """Write the archive with units in float16; units for which that is not supported are ruled out."""
        while True:
            units = in_float16 - self._reasons.keys()
            graph = in_precision(self._graph, units.__contains__)
            names = [f"output_{index}_of_try" for index in range(len(graph.outputs))]
            try:
                written = self._lowering.write(graph, names)
                break
            except (LowerError, SpecError, UnsupportedOpsError) as refusal:
                if not self._rule_out(refusal, units):
                    raise
        write_archive(written, self._archive, spec=self._target.spec)

    def _errors(self, samples: Sequence[Sample]) -> list[float]:
        """Return the largest error of the archive for each sample; infinite if the engine cannot run it."""
        self._runs += 1
        reply = self._target.engine().run(self._archive, [sample.inputs for sample in samples])
        if reply.status != "ok":
            return [math.inf] * len(samples)
        return [peak(sample.reference, outputs) for sample, outputs in zip(samples, reply.outputs, strict=True)]

    def _rule_out(self, refusal: T2NError, in_float16: set[Unit]) -> bool:
        """Rule out the units that a refusal names; return whether there are any."""
        problems = refusal.problems if isinstance(refusal, UnsupportedOpsError) else [refusal]
        origins = [problem.origin for problem in problems if isinstance(problem.origin, Origin)]
        refused_units = {(origin.module_path, name_of(origin.op)) for origin in origins}
        new = refused_units & in_float16
        self._reasons.update(dict.fromkeys(new, "cannot be written in float16"))
        return bool(new)

    def _found_plan(self, in_float16: set[Unit], error: float, unseen: int) -> FoundPlan:
        wide = {unit for unit in self._units if unit not in in_float16 or unit in self._reasons}
        plan = replace(self._all_float16, entries=tuple(self._entries(wide)))
        return FoundPlan(plan, len(self._units), len(wide), self._runs, error, self._whole, unseen, str(self._target))

    def _entries(self, wide: set[Unit]) -> Iterable[PlanEntry]:
        """Yield an entry for each operator and reason; for all modules if none computes it in float16."""
        groups: dict[tuple[str, str], list[str]] = {}
        for module, operator in (unit for unit in self._units if unit in wide):
            reason = self._reasons.get((module, operator), "too large an error in float16")
            groups.setdefault((operator, reason), []).append(module)
        for (operator, reason), modules in groups.items():
            all_wide = all(unit in wide for unit in self._units if unit[1] == operator)
            yield PlanEntry("float32", ("*",) if all_wide else tuple(modules), (operator,), reason)


def _tensors(sample: Sample) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(array)) for array in sample.inputs]
