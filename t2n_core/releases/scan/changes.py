"""Changes of a release: its contents compared with the previous release's, and the spec table's next rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from t2n_core.releases.scan.contents import Contents, LibraryOperator
from t2n_core.releases.scan.sources import Declaration

TableRow: TypeAlias = dict[str, str]
"""A row of the spec table's source, by its columns."""
COLUMNS: Final = ("registry", "operator", "kind", "since", "until", "parameters", "results", "status", "reason")
_RESULTS: Final = "output: tensor<scalar>"


@dataclass(frozen=True, slots=True)
class Difference:
    """Names that a release has and the one before has not, and the reverse. Both are sorted."""

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: Iterable[str], now: Iterable[str]) -> Difference:
        """Return the difference between two collections of names."""
        first, second = set(before), set(now)
        return cls(tuple(sorted(second - first)), tuple(sorted(first - second)))


@dataclass(frozen=True, slots=True)
class SignatureChange:
    """An operator that takes other arguments."""

    name: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class Release:
    """A release: what it holds, and what its source declares, if there is one."""

    contents: Contents
    declarations: Mapping[str, Declaration] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Return the version of the release."""
        return self.contents.release


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a release compared with another."""

    release: str
    against: str
    operators: Difference
    signatures: tuple[SignatureChange, ...]
    registries: Difference
    transforms: Difference
    runtimes: Difference
    functions: Difference
    rows: tuple[TableRow, ...]
    """The spec table's source with this release."""


def find_changes(before: Release, now: Release, table: Sequence[TableRow]) -> Changes:
    """Return what changes from one release to the next; `table` has the rows up to the former."""
    old, new = before.contents, now.contents
    current = {row["operator"]: row for row in table if row["until"] == old.release}
    usable = {name for name, row in current.items() if row["status"] != "absent"}
    signatures = tuple(
        SignatureChange(name, current[name]["parameters"], changed)
        for name in sorted(usable & new.operators.keys())
        if (changed := _changed_parameters(name, before, now)) is not None
    )
    return Changes(
        release=new.release,
        against=old.release,
        operators=Difference.of(usable, new.operators),
        signatures=signatures,
        registries=Difference.of(old.registries, new.registries),
        transforms=Difference.of(old.transforms, new.transforms),
        runtimes=Difference.of(old.runtimes, new.runtimes),
        functions=Difference.of(old.functions, new.functions),
        rows=tuple(_next_rows(table, current, now, {change.name: change.now for change in signatures})),
    )


def _changed_parameters(name: str, before: Release, now: Release) -> str | None:
    """Return the parameters of an operator where they are others than before, else None.

    Without declarations, those are compared that the engine asks for; it may end at one, so that fewer are no change.
    """
    declared = before.declarations.get(name), now.declarations.get(name)
    if declared[0] is not None and declared[1] is not None:
        return declared[1].parameters if declared[0].parameters != declared[1].parameters else None
    argument_lists = [
        list(release.contents.operators.get(name, LibraryOperator("")).arguments) for release in (before, now)
    ]
    common = min(map(len, argument_lists))
    return None if argument_lists[0][:common] == argument_lists[1][:common] else _asked(now.contents.operators[name])


def _asked(operator: LibraryOperator) -> str:
    return ", ".join(f"{name}: {_TABLE_TYPES.get(type_, type_ or '?')}" for name, type_ in operator.arguments.items())


_TABLE_TYPES: Final[Mapping[str, str]] = {"tensor": "tensor<scalar>", "tensor[]": "tensor<scalar>[]"}


def _next_rows(
    table: Sequence[TableRow], current: Mapping[str, TableRow], now: Release, changed: Mapping[str, str]
) -> Iterable[TableRow]:
    """Yield the rows of the table with the next release."""
    operators = now.contents.operators
    for row in table:
        name = row["operator"]
        is_current = current.get(name) is row
        resolves, is_absent = name in operators, row["status"] == "absent"
        moved = resolves and operators[name].registry not in ("", row["registry"])
        stays = is_current and name not in changed and resolves != is_absent and not moved
        yield {**row, "until": now.version} if stays else row
        if is_current and resolves and not stays:
            fields = {**row, "parameters": changed.get(name, row["parameters"])}
            yield _new_row(name, now, {**fields, "status": "ok", "reason": ""} if is_absent else fields)
    for name in sorted(operators.keys() - current.keys()):
        yield _new_row(name, now, {})


def _new_row(name: str, now: Release, fields: Mapping[str, str]) -> TableRow:
    """Return the row of an operator that begins with a release."""
    operator, declared = now.contents.operators[name], now.declarations.get(name)
    row = {
        "kind": declared.kind if declared else "primitive",
        "parameters": declared.parameters if declared else _asked(operator),
        "results": declared.results if declared else _RESULTS,
        "status": "ok",
        "reason": "",
        **fields,
        "registry": operator.registry or fields.get("registry") or _registry_of(name, now.contents.registries),
        "operator": name,
        "since": now.version,
        "until": now.version,
    }
    return {column: row[column] for column in COLUMNS}


def _registry_of(name: str, registries: Sequence[str]) -> str:
    """Return the registry whose name an operator's begins with."""
    full = (registry if registry.startswith("tract_") else f"tract_{registry}" for registry in registries)
    return next(
        (registry for registry in sorted(full, key=len, reverse=True) if name.startswith(registry)), "tract_core"
    )
