"""Search of a plan of precision: all in halves first; what fails is given back to float32 by groups.

The engine judges each try against the model in float64, at half the level that the archive has to hold, and once more
with inputs that the search has not seen.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from t2n_core.check.judging.halves import LARGEST, peak
from t2n_core.check.samples import Sample
from t2n_core.errors import InputError, LowerError, Origin, SpecError, T2NError, UnsupportedOpsError
from t2n_core.inference_target.tract import TractNNEF
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.tract.precision import PlanEntry, PrecisionPlan
from t2n_core.torch_graph.precision.apply import in_precision
from t2n_core.torch_graph.precision.kernels import too_slow
from t2n_core.torch_graph.precision.rules import ruled_out
from t2n_core.torch_graph.precision.units import Unit, is_product, name_of, unit_of

if TYPE_CHECKING:
    from t2n_core.export.model import ModelExport

UNSEEN: Final = 4
"""Inputs that confirm a plan."""
GOAL: Final = LARGEST / 2
_SLACK: Final = 0.75
"""Share of the goal that what is given back has to hold, so that other inputs hold the goal."""
_SEARCHED: Final = 2
"""Inputs that a search begins with."""
_ROUNDS: Final = 3
"""Searches, each with the inputs that the plan before did not hold for as well; then all is float32."""
_RUNS: Final = 24
"""Runs of the engine in which a search gives back to halves what it took from them."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan, with what the search measured."""

    plan: PrecisionPlan
    units: int
    """Operators of modules, each counted once."""
    wide: int
    """Units that stay float32."""
    runs: int
    """Runs of the engine."""
    peak: float
    """Largest error with the inputs that the search had not seen, as a share of the largest number of the output."""
    unseen: int
    """Inputs that the search had not seen."""
    release: str

    def describe(self) -> str:
        """Return what was found in one line."""
        return (
            f"{self.units - self.wide} of {self.units} operators in float16; largest error {self.peak:.2g} of the "
            f"largest number, with {self.unseen} inputs that the search had not seen in {self.release}, after "
            f"{self.runs} runs"
        )


def find_plan(export: ModelExport, target: TractNNEF) -> FoundPlan:
    """Return a plan for a target, whose engine confirmed it.

    Raises InputError if there are too few inputs to confirm it with, or the model does not run in float64; EngineError
    if the engine does not even run it in float32.
    """
    target = target.with_precision(None)
    with tempfile.TemporaryDirectory(prefix="t2n-") as folder:
        return _Search(export, target, Path(folder)).run()


class _Search:
    def __init__(self, export: ModelExport, target: TractNNEF, folder: Path) -> None:
        self._export, self._target, self._archive = export, target, folder / "try.nnef.tar"
        self._graph = export.simplified(target)
        found = (unit_of(op) for op in self._graph.op_nodes)
        self._units = list(dict.fromkeys(unit for unit in found if unit is not None))
        self._reasons: dict[Unit, str] = {}
        self._runs = 0
        self._reference = export.reference_for(target)

    def run(self) -> FoundPlan:
        known = self._reference.samples()
        samples = self._in_float64(known[:_SEARCHED])
        first = known[0]
        tensors = [torch.from_numpy(np.array(array)) for array in first.inputs]
        self._reasons = {**too_slow(self._graph, first.sizes), **ruled_out(self._graph, tensors, first.sizes)}
        given = self._in_float64(known[_SEARCHED:])
        for turn in range(_ROUNDS + 1):
            wide = self._searched(samples) if turn < _ROUNDS else set(self._units)
            unseen = [*(given if turn == 0 else []), *self._in_float64(self._reference.others(UNSEEN, turn))]
            if len(unseen) < UNSEEN:
                raise InputError(
                    f"precision='auto' needs {UNSEEN} inputs beside those of the search, and the model takes "
                    f"{len(unseen)} that were drawn",
                    hint="give more with extra_inputs=, or a plan",
                )
            error = self._error(wide, unseen)
            if error <= GOAL:
                return self._found(wide, error, len(unseen))
            samples += unseen
        raise InputError(
            f"no plan of precision: in float32 the largest error in {self._target} is {error:.2g}",
            hint="the archive is wrong, or the model is too sharp for float32: look at precision=None first",
        )

    def _in_float64(self, samples: Sequence[Sample]) -> list[Sample]:
        return self._reference.in_float64(samples)

    def _searched(self, samples: Sequence[Sample]) -> set[Unit]:
        """Return the units that stay float32 for these inputs."""
        ruled = {unit for unit in self._units if unit in self._reasons}
        if self._error(ruled, samples) <= GOAL:
            return ruled
        ruled = {unit for unit in self._units if unit in self._reasons}  # with what cannot be written as halves
        taken = self._taken(ruled, samples)
        budget = self._runs + _RUNS

        def given_back(part: list[Unit]) -> None:
            nonlocal taken
            if not part or self._runs >= budget:
                return
            if self._error(ruled | (taken - set(part)), samples) <= _SLACK * GOAL:
                taken -= set(part)
            elif len(part) > 1:
                given_back(part[: len(part) // 2])
                given_back(part[len(part) // 2 :])

        given_back(sorted(taken, key=lambda unit: (not is_product(unit), self._units.index(unit))))
        return ruled | taken

    def _taken(self, ruled: set[Unit], samples: Sequence[Sample]) -> set[Unit]:
        """Return units that must be float32 besides the ruled ones: an operator, several, or all."""
        classes: dict[str, set[Unit]] = {}
        for unit in self._units:
            if unit not in ruled:
                classes.setdefault(unit[1], set()).add(unit)
        order = sorted(classes, key=lambda name: (is_product(("", name)), len(classes[name])))
        errors = {}
        for name in order:
            errors[name] = self._error(ruled | classes[name], samples)
            if errors[name] <= _SLACK * GOAL:
                return classes[name]
        taken: set[Unit] = set()
        for name in sorted(order, key=lambda name: (errors[name], is_product(("", name)))):
            taken |= classes[name]
            if self._error(ruled | taken, samples) <= _SLACK * GOAL:
                break
        return taken

    def _error(self, wide: set[Unit], samples: Sequence[Sample]) -> float:
        """Return the largest error of a try; infinite for what the engine cannot run.

        What cannot be written in halves is ruled out, and the others are tried.
        """
        while True:
            graph = in_precision(self._graph, lambda unit: unit not in wide and unit not in self._reasons)
            names = [f"output_{place}_of_try" for place in range(len(graph.outputs))]
            try:
                written = self._export.write_graph(graph, names, self._target)
                break
            except (LowerError, SpecError, UnsupportedOpsError) as refusal:
                if not self._rule_out(refusal, wide):
                    raise
        write_archive(written, self._archive, spec=self._target.spec)
        self._runs += 1
        reply = self._target.engine().run(self._archive, [sample.inputs for sample in samples])
        if reply.status != "ok":
            return math.inf
        pairs = zip(samples, reply.outputs, strict=True)
        return max(peak(sample.reference, found) for sample, found in pairs)

    def _rule_out(self, refusal: T2NError, wide: set[Unit]) -> bool:
        """Rule out the units that a refusal names; return whether there are any."""
        problems = refusal.problems if isinstance(refusal, UnsupportedOpsError) else [refusal]
        origins = [problem.origin for problem in problems if isinstance(problem.origin, Origin)]
        named = {(origin.module_path, name_of(origin.op)) for origin in origins}
        new = [unit for unit in self._units if unit in named and unit not in wide and unit not in self._reasons]
        self._reasons.update(dict.fromkeys(new, "cannot be written in float16"))
        return bool(new)

    def _found(self, wide: set[Unit], error: float, unseen: int) -> FoundPlan:
        wide |= {unit for unit in self._units if unit in self._reasons}
        plan = PrecisionPlan("float16", tuple(self._entries(wide)))
        return FoundPlan(plan, len(self._units), len(wide), self._runs, error, unseen, str(self._target))

    def _entries(self, wide: set[Unit]) -> Iterable[PlanEntry]:
        """Yield an entry for each operator and reason; all modules where none computes it in halves."""
        groups: dict[tuple[str, str], list[str]] = {}
        for module, operator in (unit for unit in self._units if unit in wide):
            reason = self._reasons.get((module, operator), "too large an error in float16")
            groups.setdefault((operator, reason), []).append(module)
        for (operator, reason), modules in groups.items():
            all_wide = all(unit in wide for unit in self._units if unit[1] == operator)
            yield PlanEntry("float32", ("*",) if all_wide else tuple(modules), (operator,), reason)


__all__ = ["GOAL", "UNSEEN", "FoundPlan", "find_plan"]
