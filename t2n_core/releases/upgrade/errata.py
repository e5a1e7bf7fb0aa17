"""The errata of both releases that concern a graph: those the upgrade fixes, and the new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import Version

from t2n_core.errors import T2NError
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.spec import spec_for
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.parity.samples import Sample
from t2n_core.releases.upgrade.graph import Evaluated, graph_of

_MOST_SIZES: Final = 5
"""Sizes at which the graph is evaluated to find the shapes of its values."""


@dataclass(frozen=True, slots=True)
class ErrataChange:
    """Problems that the tables of this package know of a graph in one of two releases only."""

    mended: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    unknown: str = ""
    """The reason why the graph could not be looked up; empty if it was."""


def errata_between(archive: Path, samples: Sequence[Sample], before: Version, after: Version) -> ErrataChange:
    """Return the errata of an archive that only one of two releases has."""
    try:
        content = read_archive(archive)
        names = [name for assignment in content.document.assignments for name in assignment.results]
        evaluated = [
            Evaluated(sample.sizes, Evaluator.shared().evaluate(archive, sample.inputs, results=names))
            for sample in _of_other_sizes(samples)
        ]
        return errata_of(graph_of(content, evaluated), before, after)
    except T2NError as wrong:
        return ErrataChange(unknown=wrong.message)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:
        return ErrataChange(unknown=f"another exporter's form: {wrong}")  # conditions expect arguments of this one


def errata_of(graph: Graph, before: Version, after: Version) -> ErrataChange:
    """Return the errata of a graph that only one of two releases has."""
    problems = []
    for version in (before, after):
        spec = spec_for("tract", version)
        problems.append(Counter(error.message.replace(str(spec), "tract") for error in check_graph(graph, spec)))
    old, new = problems
    return ErrataChange(_lines(old, new), _lines(new, old))


def _lines(some: Counter[str], others: Counter[str]) -> tuple[str, ...]:
    """Return the problems that are not among the others, with the number of operations that have each."""
    return tuple(
        f"{message} ({count} operations)" if count > 1 else message
        for message, count in some.items()
        if message not in others
    )


def _of_other_sizes(samples: Sequence[Sample]) -> list[Sample]:
    """Return some samples, all of different sizes."""
    distinct_samples: list[Sample] = []
    for sample in samples:
        is_new = all(sample.sizes != other.sizes for other in distinct_samples)
        if is_new and len(distinct_samples) < _MOST_SIZES:
            distinct_samples.append(sample)
    return distinct_samples
