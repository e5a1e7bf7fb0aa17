"""The run of operators in releases: their verdicts, and the table of them."""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from conformance.dialect.judge import STATUSES, Verdict, judge
from conformance.dialect.known import explanation
from conformance.lab.tables import table
from t2n_core.dialect.cases import CASES, cases
from t2n_core.dialect.registry import Definition, definitions
from t2n_core.engine import ResolvedEngine, engine_for
from t2n_core.nnef.spec import spec_for

_MEANINGS: Final = ("t2n_core.dialect.meaning.onnx", "t2n_core.dialect.meaning.tract")


def known_definitions() -> dict[str, Definition]:
    """Return all definitions, after the modules that hold them were imported."""
    for module in _MEANINGS:
        importlib.import_module(module)
    return definitions()


def verdicts(ops: Sequence[str], engines: Iterable[ResolvedEngine], count: int = CASES) -> Iterator[Verdict]:
    """Yield the verdicts of the cases of each operator in each release that has it."""
    found = known_definitions()
    with TemporaryDirectory(prefix="t2n-dialect-") as scratch:
        for resolved in engines:
            spec, engine = spec_for("tract", resolved.version), engine_for(resolved)
            for op in ops:
                if spec.has(op):
                    yield from judge(cases(op, count), found[op], spec.operator(op), engine, Path(scratch))


def matrix(found: Iterable[Verdict]) -> str:
    """Return the table operator × release: how many cases were right, and of those that were not, how many of each."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    releases: dict[str, None] = {}
    for verdict in found:
        counts[verdict.case.op][verdict.release][verdict.status] += 1
        releases.setdefault(verdict.release)

    def cell(of: Counter[str]) -> str:
        return ", ".join(f"{of[status]} {status}" for status in STATUSES if of[status])

    rows = ([f"`{op}`", *(cell(counts[op][release]) for release in releases)] for op in sorted(counts))
    return table(["operator", *releases], rows)


def smallest(found: Iterable[Verdict]) -> list[Verdict]:
    """Return, for each operator, release and explanation, the smallest case that is not right."""
    chosen: dict[tuple[str, str, str, str], Verdict] = {}
    for verdict in found:
        if verdict.status == "right":
            continue
        known = explanation(verdict)
        key = verdict.case.op, verdict.release, verdict.status, known.reason if known else ""
        if key not in chosen or _elements(verdict) < _elements(chosen[key]):
            chosen[key] = verdict
    return list(chosen.values())


def _elements(verdict: Verdict) -> int:
    return sum(array.size for _, _, array in verdict.case.tensors())
