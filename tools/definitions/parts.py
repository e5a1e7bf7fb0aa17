"""The parts of an operator's section: its signature, definition, releases, errata, and an example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from types import ModuleType
from typing import Any, Final

import numpy as np
from packaging.version import Version

from conformance.dialect.known import KNOWN
from conformance.lab.pages.tables import table
from t2n_core.dialect import Case, cases
from t2n_core.dialect.cases import operators as with_cases
from t2n_core.nnef.lexical import literal_text
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.signatures import REQUIRED, Parameter
from t2n_core.nnef.spec import known_operators, signatures_of, spec_data, spec_for
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from t2n_core.nnef.tract.quirks.table import QUIRKS
from tools.build_spec_tables import known_releases
from tools.errata_table import releases_text

_LABELS: Final = (
    "Formula and shapes", "Shapes and special values", "Formula", "Shapes", "Domain", "Special values", "Source",
)  # fmt: skip
"""What the sentences of a definition begin with that are no part of its summary."""
_LABEL: Final = re.compile(rf"(?:^|(?<=[.;:,)]) )((?:{'|'.join(_LABELS)})(?: \([^)]*\))?): ")
_SHOWN: Final = 12
"""Elements up to which an example shows all of a tensor."""


def first_line(module: ModuleType) -> str:
    """Return the first line of a module's docstring."""
    return inspect.cleandoc(module.__doc__ or "").partition("\n")[0]


def definition_text(docstring: str) -> str:
    """Return a definition as Markdown: its summary, then a list of formula, shapes, domain, special values, source."""
    summary, *rest = _LABEL.split(" ".join(docstring.split()))
    items = [f"- {label}: {_escaped(text)}" for label, text in zip(rest[::2], rest[1::2], strict=True)]
    return "\n".join([_escaped(summary), "", *items]) if items else _escaped(summary)


def _escaped(text: str) -> str:
    """Return text with the characters escaped that Markdown would read as marks, outside of code."""
    parts = text.strip().split("`")
    parts[::2] = [part.replace("*", "\\*").replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def signature_text(name: str) -> str:
    """Return the newest signature of an operator as a block of code."""
    signature = next(iter(signatures_of(name)))
    parameters = ",\n".join(f"    {_parameter_text(parameter)}" for parameter in signature.parameters)
    results = ", ".join(_parameter_text(result) for result in signature.results)
    return f"```text\n{name}(\n{parameters}\n) -> ({results})\n```"


def _parameter_text(entry: Parameter) -> str:
    if entry.default is REQUIRED:
        return f"{entry.name}: {entry.type}"
    return f"{entry.name}: {entry.type} = {'none' if entry.default is None else literal_text(entry.default)}"


@cache
def releases_of(name: str) -> str:
    """Return the releases that have an operator: of tract, and the standard."""
    releases = _releases()
    runs = [(has, list(of)) for has, of in groupby(releases, lambda release: spec_for("tract", release).has(name))]
    spans = [_span(of, releases) for has, of in runs if has]
    standard = ["NNEF 1.0"] if name in known_operators("khronos") else []
    return ", ".join([*standard, *spans]) or "no release of tract"


@cache
def _releases() -> list[str]:
    """Return the releases that the table of operators has."""
    oldest = Version(spec_data("tract.json")["oldest"])
    return [release for release in known_releases() if Version(release) >= oldest]


def _span(of: list[str], releases: list[str]) -> str:
    first, last = of[0], of[-1]
    if of == releases:
        return "every release of tract"
    if last == releases[-1]:
        return f"tract {first} and later"
    return f"tract {first}" if first == last else f"tract {first} to {last}"


def errata_text(name: str) -> str:
    """Return the table of what releases are known to do otherwise; empty if nothing is known."""
    rows = list(_errata(name))
    return table(("releases", "what differs", "write instead"), rows) if rows else ""


def _errata(name: str) -> Iterator[tuple[str, str, str]]:
    for erratum in (*HAZARDS, *QUIRKS):
        if name in erratum.operators:
            conditions = " and ".join(condition.text for condition in getattr(erratum, "conditions", ()))
            description = f"where {conditions}: {erratum.reason}" if conditions else erratum.reason
            yield releases_text(*erratum.releases), description, erratum.safe
    for failure in KNOWN:
        if name in failure.operators:
            releases = releases_text(Releases.of(failure.since, failure.before))
            yield releases, f"{' or '.join(failure.statuses)}: {failure.reason}", ""


def example_text(name: str) -> str:
    """Return the smallest case of an operator with its tensors; empty for one without cases."""
    if name not in with_cases():
        return ""
    case = smallest(cases(name))
    expected = zip(case.results(), case.expected(), strict=True)
    lines = [f"{label} = {array_text(array)}" for _, label, array in case.tensors()]
    results = [f"{label} = {array_text(array)}" for label, array in expected]
    body = "\n".join([*lines, f"{case.statement()};", *results])
    return f"```text\n{case.fragments}{body}\n```"


def smallest(drawn: Iterable[Case]) -> Case:
    """Return the case with the fewest elements, of those whose results have more than one if there are some."""
    by_size = sorted(drawn, key=lambda case: sum(array.size for _, _, array in case.tensors()))
    return next((case for case in by_size if min(array.size for array in case.expected()) > 1), by_size[0])


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return type, shape and elements of an array; of a larger one those at the ends of its axes."""
    formats: Any = {"float_kind": lambda value: f"{value:.4g}"}
    written = np.array2string(array, separator=", ", threshold=_SHOWN, edgeitems=2, formatter=formats)
    return f"{array.dtype}{list(array.shape)} {' '.join(written.split()).replace('...', '…').replace('[ ', '[')}"
