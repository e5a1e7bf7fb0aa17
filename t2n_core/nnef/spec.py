"""Tables of the operators and arguments of each target version, consulted before an operation is written.

Old tract versions accept an argument they do not know and compute something else, so a successful load proves nothing,
unlike these tables. They are package data (`spec_data/*.json`), built by `tools/build_spec_tables.py`.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from packaging.version import InvalidVersion, Version

from t2n_core.errors import SpecError
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.signatures import REQUIRED, Parameter, Signature
from t2n_core.text import suggestion

TargetName: TypeAlias = Literal["tract", "khronos"]

__all__ = [
    "REQUIRED",
    "Parameter",
    "Signature",
    "Spec",
    "TargetName",
    "is_operator",
    "known_operators",
    "signatures_of",
    "spec_data",
    "spec_for",
]


@dataclass(frozen=True, slots=True)
class _Row:
    """A signature with the releases that have it."""

    signature: Signature
    releases: Releases
    until: str
    """The last release that has it."""
    absent: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    oldest: Version
    newest: Version
    rows: Mapping[str, tuple[_Row, ...]]


class Spec:
    """The operators of one target version."""

    def __init__(
        self, target: TargetName, version: Version, table: _Table, registries: frozenset[str] | None = None
    ) -> None:
        self.target: TargetName = target
        self.version = version
        self.extrapolated = version > table.newest
        """True if this version is newer than the table, so that the newest known one is used for it."""
        self.newest = table.newest
        """The newest release of the table."""
        self.registries = registries
        """tract's registries that may be used; None for all that the releases from PyPI have."""
        self._table = table
        covered = min(version, table.newest)
        self._rows = {name: row for name, rows in table.rows.items() for row in rows if covered in row.releases}
        self._names = tuple(name for name, row in self._rows.items() if not row.absent)

    def __repr__(self) -> str:
        return f"Spec({self})"

    def __str__(self) -> str:
        return f"{self.target} {self.version}"

    def operator(self, name: str) -> Signature:
        """Return the signature of `name`. Raises SpecError, with the versions that have it, if this one does not."""
        row = self._rows.get(name)
        if row is not None and not row.absent:
            if self._is_switched_off(row):
                registry = row.signature.registry
                flag = registry.removeprefix("tract_")
                raise SpecError(
                    f"`{name}` belongs to {registry}, which the target's `registries` exclude",
                    op=name,
                    target=str(self),
                    hint=f"add {flag!r} to feature_flags or registries if your engine is built with it",
                )
            return row.signature
        raise SpecError(f"{self} has no operator `{name}`; {self._elsewhere(name)}", op=name, target=str(self))

    def has(self, name: str, attribute: str | None = None) -> bool:
        """Return whether the operator works in this version and, if asked, has that argument."""
        row = self._rows.get(name)
        if row is None or row.absent or row.signature.broken or self._is_switched_off(row):
            return False
        return attribute is None or row.signature.parameter(attribute) is not None

    def names(self) -> tuple[str, ...]:
        """Return all operators that this version can resolve, broken ones included."""
        return self._names

    def with_registries(self, registries: Iterable[str]) -> Spec:
        """Return the same version, built with these registries and the standard library only."""
        return Spec(self.target, self.version, self._table, frozenset(registries))

    def registry_since(self, registry: str) -> Version | None:
        """Return the first release with operators of a registry; None if no release has any."""
        rows = (row for of_name in self._table.rows.values() for row in of_name if row.signature.registry == registry)
        return min((since for row in rows if not row.absent and (since := row.releases.since)), default=None)

    def _is_switched_off(self, row: _Row) -> bool:
        allowed = self.registries
        return allowed is not None and row.signature.registry not in (*allowed, "tract_nnef", "")

    def _elsewhere(self, name: str) -> str:
        rows = self._table.rows.get(name, ())
        usable = [row for row in rows if not row.absent and not row.signature.broken]
        for row in usable:
            if self.version not in Releases(row.releases.since):
                return f"available since {row.releases.since}"
        if usable:
            return f"available only up to {usable[-1].until}"
        if rows:
            return rows[-1].absent or rows[-1].signature.broken
        near = suggestion(name, self.names(), "", most=3)
        return "unknown in every version" + (f"; {near}" if near else "")


def spec_for(target: TargetName, version: str | Version) -> Spec:
    """Return the operators of that version; for a tract newer than the table, of the newest known (`extrapolated`).

    Raises SpecError for an unknown target, a version that cannot be read, one older than the table, and a later
    standard.
    """
    if target not in ("tract", "khronos"):
        raise SpecError(f"unknown target {target!r}: `tract` or `khronos`")
    try:
        return _spec_for(target, str(version))
    except InvalidVersion as wrong:
        raise SpecError(f"{version!r} is not a version of {target}") from wrong


def newest_spec(target: TargetName) -> Spec:
    """Return the operators of the newest version in the table."""
    return _spec_for(target, str(_table(target).newest))


def known_operators(target: TargetName) -> Iterable[str]:
    """Return the names of all operators that any version of a target has."""
    return _table(target).rows.keys()


def signatures_of(name: str) -> Iterator[Signature]:
    """Yield the signatures that an operator has in any version, tract's before the standard's, the newest first."""
    targets: tuple[TargetName, ...] = get_args(TargetName)
    for target in targets:
        for row in reversed(_table(target).rows.get(name, ())):
            yield row.signature


def is_operator(name: str) -> bool:
    """Return whether any version of any target has this operator."""
    return any(name in _table(target).rows for target in get_args(TargetName))


@functools.cache
def _spec_for(target: TargetName, text: str) -> Spec:
    table, version = _table(target), Version(text)
    if version < table.oldest:
        raise SpecError(f"{target} {version} is too old: the first supported version is {table.oldest}")
    if target == "khronos" and version > table.newest:
        raise SpecError(f"{target} {version} is not known: the newest version of the standard here is {table.newest}")
    return Spec(target, version, table)


def spec_data(name: str) -> Any:
    """Return the parsed content of one of the package's data files."""
    return json.loads(importlib.resources.files("t2n_core.nnef").joinpath("spec_data", name).read_text("utf-8"))


@functools.cache
def _table(target: TargetName) -> _Table:
    data = spec_data(f"{target}.json")
    rows = {name: tuple(_row(name, entry) for entry in entries) for name, entries in data["operators"].items()}
    return _Table(Version(data["oldest"]), Version(data["newest"]), rows)


def _row(name: str, entry: Mapping[str, Any]) -> _Row:
    signature = Signature(
        name=name,
        parameters=tuple(Parameter(*p) for p in entry["parameters"]),
        results=tuple(Parameter(*p) for p in entry["results"]),
        registry=entry["registry"],
        broken=entry.get("broken", ""),
    )
    return _Row(signature, Releases.of(entry["since"], entry["before"]), entry["until"], entry.get("absent", ""))
