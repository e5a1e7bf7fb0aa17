"""Choose sizes on both sides of the conditions that a run of a model evaluates, by trying many of them.

A condition is computed at all sizes of a grid, so that nothing here depends on how conditions are solved elsewhere.
Conditions that the model evaluates on the other side are treated in turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from t2n_core.check.sampling.recorded_run import Question
from t2n_core.check.sampling.size_values import value_of

Sizes: TypeAlias = Mapping[str, int]
Grid: TypeAlias = dict[str, NDArray[np.int64]]
_LINE, _PLANE, _BOX = 1 << 16, 512, 40
"""Sizes of a symbol that are tried if a condition has one symbol, two, or more."""
_NEAREST = 2048
"""Most points of the grid that are tested for one condition."""
_WANTED = 3
"""Sizes on the other side of a condition of the model: next to it, and further away."""
_TRIED = 8
"""Most sizes that are tried for each of these."""
_RUNS = 6
"""Most runs whose conditions are treated."""
_QUESTIONS = 1000
"""Questions after which there are no more runs."""
_MOST = 12
"""Most sizes that are added."""


@dataclass(slots=True)
class BothSides:
    """The search for sizes on both sides of a model's conditions."""

    ask: Callable[[Sizes], Sequence[Question]]
    """Returns the questions of a run at some sizes."""
    allowed: Callable[[Sizes], bool]
    """Returns whether sizes are in the range, and worth a run."""
    take: Callable[[Sizes], bool]
    """Adds sizes to the check; returns False if the model cannot run there."""
    bounds: Mapping[str, tuple[int, int | None]]
    known: list[Sizes]
    """Sizes that are already checked."""
    _added: int = 0
    _asked: set[tuple[str, bool]] = field(default_factory=set)

    def search(self, *starts: Sizes) -> None:
        """Add sizes on the other side of each question at these sizes, and of the questions asked there."""
        ahead = list(starts)
        for _ in range(_RUNS):
            if not ahead or self._added >= _MOST or len(self._asked) > _QUESTIONS:
                return
            here = ahead.pop(0)
            path = self.ask(here)
            self._asked |= {(str(question.condition), question.answer) for question in path}
            for index, question in enumerate(path):
                if (str(question.condition), not question.answer) in self._asked:
                    continue
                there = self._across(question, path[:index], here)
                if there is not None and question.is_the_models and not question.is_number:
                    self._asked.add((str(question.condition), not question.answer))
                    ahead.append(there)

    def _across(self, question: Question, before: Sequence[Question], here: Sizes) -> Sizes | None:
        """Return sizes in the check at which a question has another answer; add some if there are too few."""
        before = (
            [earlier for earlier in before if earlier.is_the_models and not earlier.is_number]
            if question.is_the_models
            else []
        )
        try:
            there = [sizes for sizes in self.known if _turns(question, before, sizes)]
            count = _WANTED if question.is_the_models else 1
            if len(there) < count:
                there += self._take_across(question, before, here, count - len(there))
        except KeyError:  # an expression that is not supported here
            return None
        return there[0] if there else None

    def _take_across(self, question: Question, before: Sequence[Question], here: Sizes, count: int) -> list[Sizes]:
        crossed: list[Sizes] = []
        points = [p for p in self._points(question, before, here) if p not in self.known]
        for sizes in [*points[: count - 1], *_further(points, here), *points[count - 1 :]][:_TRIED]:
            if len(crossed) >= count or self._added >= _MOST:
                break
            if sizes not in crossed and self.take(sizes):
                crossed.append(sizes)
                self.known.append(sizes)
                self._added += 1
        return crossed

    def _points(self, question: Question, before: Sequence[Question], here: Sizes) -> list[Sizes]:
        """Return allowed sizes on the other side of a question, the nearest first.

        Sizes with the same answers to the questions before it are preferred.
        """
        names = _symbols(question)
        if not names <= self.bounds.keys():
            return []
        tied = [earlier for earlier in before if _symbols(earlier) & names]
        names = names.union(*map(_symbols, tied))
        for constraints in dict.fromkeys((tuple(tied), ())):
            candidates: list[Sizes] = []
            for grid in self._grids(sorted(names), here):
                across = _turns(question, constraints, grid)
                (at,) = np.nonzero(np.broadcast_to(across, len(next(iter(grid.values())))))
                distance = sum(np.abs(grid[name][at] - here[name]) for name in names)
                at = at[np.argsort(distance, kind="stable")][:_NEAREST]
                points = ({**here, **{name: int(grid[name][index]) for name in names}} for index in at)
                candidates += itertools.islice(filter(self.allowed, points), _TRIED**2)
            if candidates:
                return sorted(candidates, key=lambda sizes: _distance(sizes, here))
        return []

    def _grids(self, names: Sequence[str], here: Sizes) -> Iterator[Grid]:
        """Yield the sizes of each symbol alone, equal sizes of all, and small sizes of all of them at once."""
        for moved in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
            low, high = zip(*(self._ends(name, _LINE) for name in moved), strict=True)
            line = np.arange(max(low), min(high) + 1)
            yield {name: line if name in moved else np.full(line.shape, size) for name, size in here.items()}
        if len(names) > 1:
            ends = [self._ends(name, _PLANE if len(names) == 2 else _BOX) for name in names[:3]]
            mesh = [m.reshape(-1) for m in np.meshgrid(*(np.arange(a, b + 1) for a, b in ends), indexing="ij")]
            yield {
                **{name: np.full(mesh[0].shape, size) for name, size in here.items()},
                **dict(zip(names, mesh, strict=False)),
            }

    def _ends(self, name: str, count: int) -> tuple[int, int]:
        """Return the smallest and largest size of a symbol to try."""
        low, high = self.bounds[name]
        end = max(count, low + count // 8)
        return low, end if high is None else min(high, end)


def _symbols(question: Question) -> set[str]:
    return {s.name for s in question.condition.free_symbols}


def _value(question: Question, sizes: Mapping[str, Any]) -> Any:
    return value_of(question.condition, {s: sizes[s.name] for s in question.condition.free_symbols})


def _turns(question: Question, before: Sequence[Question], sizes: Mapping[str, Any]) -> Any:
    """Return whether a question has another answer at these sizes, and all questions before it the same."""
    across = np.asarray(_value(question, sizes)) != question.answer
    for earlier in before:
        across = across & (np.asarray(_value(earlier, sizes)) == earlier.answer)
    return across


def _distance(sizes: Sizes, here: Sizes) -> int:
    return sum(abs(size - here[name]) for name, size in sizes.items())


def _further(points: Sequence[Sizes], here: Sizes) -> list[Sizes]:
    """Return the first point that is about twice as far away as the nearest."""
    return [point for point in points if _distance(point, here) > 2 * _distance(points[0], here) + 4][:1]
