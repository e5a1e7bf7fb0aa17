"""Select the emitter's errata that apply to a case, and the errata that a run found.

An erratum is found if some case that it applies to fails in its releases, in the releases of the case's other errata,
and in no other release of the run. The run itself does not read the table of errata.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from packaging.version import Version

from conformance.dialect.findings import Finding
from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases import Case, cases, operators
from t2n_core.dialect.operators import functions
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import signatures_of, spec_for
from t2n_core.nnef.tract.graph_facts import GraphFacts
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from t2n_core.nnef.tract.quirks.quirk import Erratum, OperationView
from t2n_core.nnef.tract.quirks.table import QUIRKS

ERRATA: Final[tuple[Erratum, ...]] = (*HAZARDS, *QUIRKS)
_SYMBOL: Final = symbol("S")


def applying(case: Case) -> list[Erratum]:
    """Return the errata whose predicate holds for a case, of any release."""
    of_operator = [entry for entry in ERRATA if case.op in entry.operators]
    if not of_operator:
        return []
    view = view_of(case)
    return [entry for entry in of_operator if entry.applies(view)]


def erratum(case: Case, release: str) -> Erratum | None:
    """Return an erratum of a release that applies to a case, or None."""
    return next((entry for entry in applying(case) if entry.concerns(Version(release))), None)


def found(releases: Sequence[str], findings: Iterable[Finding]) -> list[Erratum]:
    """Return the errata that a run over releases found, each with its range."""
    failing: dict[tuple[str, int], set[str]] = defaultdict(set)
    for finding in findings:
        for number in finding.cases:
            failing[finding.op, number].update(finding.releases)
    seen: list[Erratum] = []
    for op in operators():
        having = [release for release in releases if spec_for("tract", release).has(op)]
        for number, case in enumerate(cases(op)):
            bad = failing.get((op, number))
            if bad:
                concerned = {entry: {r for r in having if entry.concerns(Version(r))} for entry in applying(case)}
                if bad == set[str]().union(*concerned.values()):
                    seen += [entry for entry, of_one in concerned.items() if of_one]
    return [entry for entry in ERRATA if entry in seen]


def view_of(case: Case) -> OperationView:
    """Return a case as an operation of a graph, with the defaults of its signature."""

    def value(name: str, item: Any) -> Any:
        if isinstance(item, list | tuple):
            return type(item)(value(name, element) for element in item)
        return _value(case, name, item) if isinstance(item, np.ndarray) else item

    arguments = {name: value(name, item) for name, item in case.arguments.items()}
    results = [Expected(_shape(case, array), array.dtype) for array in case.expected(functions().get(case.op))]
    return OperationView(case.op, arguments, results, GraphFacts()).with_defaults(next(iter(signatures_of(case.op))))


def _value(case: Case, name: str, array: Array) -> Value:
    shape: list[Any] = list(array.shape)
    if name in case.dynamic:
        shape[case.dynamic[name]] = _SYMBOL
    value = Value(name, array.dtype, tuple(shape))
    if name in case.constant:
        value.weight = ArrayWeight(array)
        value.producer = Operation("variable", {"label": name, "shape": shape}, (value,))
    return value


def _shape(case: Case, result: Array) -> Sequence[Any]:
    """Return a result's shape, with the symbol for each extent equal to the dynamic axis's."""
    if not case.dynamic:
        return result.shape
    name, axis = next(iter(case.dynamic.items()))
    extent = next(array.shape[axis] for label, _, array in case.tensors() if label == name)
    return tuple(_SYMBOL if size == extent else size for size in result.shape)
