"""Entries of expectations that fit no cell of a session."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_t2n.collect.selection import Selection
from pytest_t2n.expect.entries import Expectation, Expectations, names_suite
from pytest_t2n.records.cell import SelectedEngine


def unused_entries(
    expectations: Expectations, selection: Selection | None, engines: Sequence[SelectedEngine], *, everything: bool
) -> list[tuple[Expectation, str]]:
    """Return the entries that fit no planned cell although their suite and engine are in the session, with messages.

    `everything` is True if all suites of the project were collected. A session that left tests out has no unused
    entries, and an entry whose engine or suite is not in the session is not unused.
    """
    if selection is None or selection.partial or not expectations:
        return []
    used, shadowed = set[int](), dict[int, Expectation]()
    for cell in selection.planned:
        fitting = expectations.fitting(cell.case, cell.engine.qualified_target, cell.engine.version, cell.engine.label)
        used.update(fitting[:1])
        for index in fitting[1:]:
            shadowed.setdefault(index, expectations.entries[fitting[0]])
    unused = []
    engine_names = [(engine.qualified_target, engine.version, engine.label) for engine in engines]
    for index, entry in enumerate(expectations.entries):
        if index in used or not any(entry.fits_engine(*engine) for engine in engine_names):
            continue
        where = f"`{entry.case}` on {', '.join(entry.engines)}"
        if index in shadowed:
            unused.append(
                (entry, f"the entry of {where} has no effect: {shadowed[index].place} fits its cells before it")
            )
        elif everything or names_suite(entry, selection.suites):
            unused.append((entry, f"the entry of {where} fits no cell of this session; remove or correct it"))
    return unused
