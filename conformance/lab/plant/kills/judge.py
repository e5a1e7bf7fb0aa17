"""What is wrong with the records of a session after a kill, and after it was resumed."""

from __future__ import annotations

from pathlib import Path

from conformance.lab.plant.kills.session import CELLS, WRONG, Killed
from pytest_t2n.records.file import read_records
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.schema import Record, RecordError, cells_of

_BY_KILL = ("not_run", "crash", "timeout", "error", "oom")
"""Statuses that a kill may give to any cell."""


def problems_of(killed: Killed) -> list[str]:
    """Return what is wrong after the kill."""
    found = [f"a process is left: {command}" for command in killed.left]
    if killed.status is None:
        found.append("the session did not end")
    if killed.status == 0:
        found.append("the session succeeded")
    if "INTERNALERROR" in killed.log:
        found.append("an internal error of pytest")
    if not killed.file.exists():
        return found
    torn: list[str] = []
    records = _records(killed.file, found, torn)
    cells = cells_of(records)
    is_whole = len(cells) == CELLS and not torn and all(cell.status != "not_run" for cell in cells)
    if not is_whole and not completeness_of(records).notice:
        found.append("the file reads as whole")
    return found + _wrong(records)


def problems_of_resumed(killed: Killed, status: int) -> list[str]:
    """Return what is wrong after a resumed session, which ends with `status`."""
    found = [] if status == 1 else [f"the resumed session ends with {status}, though a cell is wrong"]
    records = _records(killed.file, found, found)
    if notice := completeness_of(records).notice:
        found.append(f"the resumed session is {notice}")
    kept = {cell.status for cell in cells_of(records)} & set(_BY_KILL)
    if kept and killed.kind == "controller":
        found.append(f"the resumed session has cells of the status {', '.join(sorted(kept))}")
    return found + _wrong(records)


def _records(file: Path, found: list[str], torn: list[str]) -> list[Record]:
    try:
        return read_records(file, torn.append)
    except RecordError as wrong:
        found.append(f"its records cannot be read: {wrong}")
        return []


def _wrong(records: list[Record]) -> list[str]:
    wanted = ["mismatch" if f"[{WRONG}-" in cell.nodeid else "pass" for cell in cells_of(records)]
    return [
        f"{cell.nodeid} is {cell.status}"
        for cell, want in zip(cells_of(records), wanted, strict=True)
        if cell.status not in (want, *_BY_KILL)
    ]
