"""The note about a release: what it changes, in Markdown, and what is left to do for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2n_core.releases.scan.changes import Changes, Difference, TableRow

_TABLES = "t2n_core/engine/tract/transforms/table.py"
_DRIVER = "t2n_core/engine/tract/driver.py"
_MEANINGS = "t2n_core/dialect/meaning/tract/"


def note(changes: Changes) -> str:
    """Return the text about a release that upstream did not write."""
    return "\n".join(_lines(changes)) + "\n"


def _lines(changes: Changes) -> Iterator[str]:
    yield f"# What tract {changes.release} changes"
    yield ""
    yield f"In comparison with {changes.against}, asked of both libraries."
    rows = {row["operator"]: row for row in changes.rows if row["since"] == changes.release}
    new = [rows[name] for name in changes.operators.new if name in rows]
    yield from _section("New operators", [_operator(row) for row in new])
    yield from _section("Operators that are gone", _code(changes.operators.gone))
    yield from _section(
        "Operators with other arguments",
        [
            f"`{change.name}`: {change.now or 'none'}; before: {change.before or 'none'}"
            for change in changes.signatures
        ],
    )
    for title, difference in _kinds(changes):
        yield from _section(f"New {title}", _code(difference.new))
        yield from _section(f"{title.capitalize()} that are gone", _code(difference.gone))
    if _is_unchanged(changes):
        yield from ("", "Operators, registries, transforms, runtimes and functions are the same.")
    yield from _section("Left to do", list(tasks(changes)))


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from ("", f"## {title}", "", *(f"- {item}" for item in items))


def _code(names: Sequence[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def _operator(row: TableRow) -> str:
    return f"`{row['operator']}` of {row['registry']}: {row['parameters'] or 'no arguments'}"


def _kinds(changes: Changes) -> tuple[tuple[str, Difference], ...]:
    return (
        ("registries", changes.registries),
        ("transforms", changes.transforms),
        ("runtimes", changes.runtimes),
        ("functions of the library", changes.functions),
    )


def _is_unchanged(changes: Changes) -> bool:
    differences = (changes.operators, *(difference for _, difference in _kinds(changes)))
    return not changes.signatures and all(difference == Difference() for difference in differences)


def tasks(changes: Changes) -> Iterator[str]:
    """Yield what the tables cannot take from a scan: the file, and what to write there."""
    for name in changes.operators.new:
        yield f"`{_MEANINGS}`: the definition of `{name}`, and a recipe of its cases in `t2n_core/dialect/cases/`"
    for change in changes.signatures:
        yield f"`{_MEANINGS}`: the definition of `{change.name}` with its new arguments"
    for name in changes.transforms.new:
        yield f"`{_TABLES}`: the transform `{name}`, with the precision that it loses"
    for name in changes.transforms.gone:
        yield f"`{_TABLES}`: the end of the transform `{name}`, {changes.release}"
    for name in changes.registries.new:
        yield f"`{_DRIVER}`: the registry `{name}` in `REGISTRIES`"
    if changes.functions.gone:
        yield f"`{_DRIVER}`: what it calls in place of {', '.join(_code(changes.functions.gone))}, if it calls it"
