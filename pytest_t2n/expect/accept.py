"""Rewriting files of expectations for `--t2n-accept`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_t2n.expect.engines import specifiers_of
from pytest_t2n.expect.entries import BEFORE_EXPORTS, HEADER_LINE, Expectation, literal_glob, read_expectations
from pytest_t2n.expect.judge import ACCEPTED, acceptable
from pytest_t2n.expect.size import off_by, with_room
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.schema import CellLine
from t2n_core.files import write_whole
from t2n_core.parity.stage import Status

HEADER = """\
# Failures that are known, for `--t2n-expect`. The first entry that fits a cell counts; one that holds no longer, or
# fits nothing, fails the session. `--t2n-accept` rewrites this file from what a session finds; comments stay.
"""
_REASON = 160
_WRITTEN = "accepted"
"""Prefix of automatically written reasons."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failing cell without its evidence, and the size of a mismatch."""

    cell: CellLine
    size: float | None

    @classmethod
    def of(cls, cell: CellLine) -> _Failure:
        return cls(outline_of(cell), off_by(cell) if cell.status == Status.MISMATCH else None)


@dataclass(slots=True)
class _Change:
    """The results of the cells that one entry fits."""

    holds: list[_Failure]
    fails: bool = False
    """True if a cell passed, or failed in another way."""


def accept_results(
    paths: Sequence[Path],
    root: Path,
    cells: Iterable[CellLine],
    engines: Sequence[SelectedEngine],
    unused: Iterable[Expectation] = (),
) -> list[str]:
    """Rewrite the files so that a session with these cells would have no surprise; new entries go to the last file.

    Return messages about the entries written and removed.

    Raises:
        OSError: a file cannot be written.
        ExpectationError: a file cannot be read.
    """
    current = read_expectations(paths, root, missing_ok=True)
    changes = {entry: _Change([]) for entry in current.entries}
    gone = set(unused)
    new: list[tuple[_Failure, Expectation | None]] = []
    """Each new entry, and the entry that it takes its reason from."""
    for cell in cells:
        if cell.status in ("skip", "not_run") or cell.stage in BEFORE_EXPORTS:
            continue
        if cell.expected and not cell.expected.startswith(ACCEPTED) and current.find(*_key(cell)) is None:
            continue  # an xfail mark, or a test that expects the failure
        entry = current.find(*_key(cell))
        if entry is not None and entry.holds(cell):
            changes[entry].holds.append(_Failure.of(cell))
        else:
            if entry is not None:
                changes[entry].fails = True
            if acceptable(cell) and _is_lasting(cell):
                by_hand = entry is not None and not entry.reason.startswith(_WRITTEN)
                new.append((_Failure.of(cell), entry if by_hand else None))
    removed = [entry for entry, change in changes.items() if change.fails or entry in gone]
    for entry in removed:
        new += [(failure, entry) for failure in changes[entry].holds]
    added = _entries_of(new, engines)
    for position, path in enumerate(paths):
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        last = position == len(paths) - 1
        file_entries = [entry for entry in current.entries if entry.file == name]
        _rewrite(path, file_entries, set(removed), added if last else [])
    if not removed and not added:
        return ["--t2n-accept: the expectations hold, nothing to rewrite"]
    return [f"--t2n-accept: {len(added)} cases written, {len(removed)} removed, {paths[-1]}"]


def _entries_of(
    failures: Iterable[tuple[_Failure, Expectation | None]], engines: Sequence[SelectedEngine]
) -> list[Expectation]:
    """Return one entry per case and way of failing, for all engines that fail so, with the largest mismatch."""
    groups: dict[tuple[str, str, str, str, str, str], list[_Failure]] = {}
    for failure, entry in failures:
        cell = failure.cell
        reason, issue = (entry.reason, entry.issue) if entry is not None else (reason_of(cell), "")
        error = cell.error.error_class if cell.error is not None else ""
        groups.setdefault((cell.case, cell.stage, cell.status, reason, issue, error), []).append(failure)
    entries = []
    for (case, stage, status, reason, issue, error), group in sorted(groups.items()):
        specifiers = specifiers_of([failure.cell for failure in group], engines)
        sizes = [failure.size for failure in group if failure.size is not None]
        size = with_room(max(sizes)) if sizes else None
        entries.append(Expectation(literal_glob(case), specifiers, stage, status, reason, issue, error, size))
    return entries


def reason_of(cell: CellLine) -> str:
    """Return the reason of a new entry, to be replaced by a better one: the start of the error's message."""
    lines = (cell.error.message.strip() if cell.error else "").splitlines() or [""]
    # the first of a list of problems, not the line above that counts them
    message = next((line[2:] for line in lines if line.startswith("- ")), lines[0])
    text = f"{_WRITTEN}: {message}" if message else _WRITTEN
    return text if len(text) <= _REASON else f"{text[:_REASON]}…"


def _is_lasting(cell: CellLine) -> bool:
    """Return False for a dead worker of xdist, which is not a failure of the engine."""
    return cell.error is None or cell.error.error_class != "WorkerCrash"


def _key(cell: CellLine) -> tuple[str, str, str, str]:
    return cell.case, cell.qualified_target, cell.version, cell.label


def _rewrite(
    path: Path, entries: Sequence[Expectation], removed: Set[Expectation], added: Sequence[Expectation]
) -> None:
    """Replace the removed ones of the `entries` of a file by the added ones; the rest stays unchanged.

    Edited line by line: a TOML parser would attach the comment above an entry to the end of the previous entry.
    """
    if removed.isdisjoint(entries) and not added:
        return
    lines = (path.read_text(encoding="utf-8") if path.exists() else HEADER).splitlines()
    starts = [number for number, line in enumerate(lines) if HEADER_LINE.match(line)]
    begins = [_comment_above(lines, start) for start in starts]
    ends = [*begins[1:], len(lines)] if begins else []
    head = lines[: begins[0]] if begins else lines
    remaining = []
    for start, begin, end in zip(starts, begins, ends, strict=True):
        cases = [entry for entry in entries if entry.line == start + 1]
        left = [entry for entry in cases if entry not in removed]
        if len(left) == len(cases):
            remaining.append(lines[begin:end])
        elif left:
            remaining.append(lines[begin:start] + _block(left))
    # The new entries come first, so that no entry that stays fits the same cells before them.
    blocks = [head, *(_block(cases) for cases in _alike(added)), *remaining]
    text = "\n\n".join("\n".join(block).strip("\n") for block in blocks if any(block)) + "\n"
    write_whole(path, text)


def _alike(entries: Iterable[Expectation]) -> list[list[Expectation]]:
    """Return groups of expectations that differ only in their cases; each group is written as one entry."""
    groups: dict[Expectation, list[Expectation]] = {}
    for entry in entries:
        groups.setdefault(replace(entry, case=""), []).append(entry)
    return list(groups.values())


def _comment_above(lines: Sequence[str], start: int) -> int:
    """Return the first line of an entry together with the comment directly above it."""
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return start


def _block(cases: Sequence[Expectation]) -> list[str]:
    """Return the lines of an entry with these cases, which differ in nothing else."""
    import tomlkit

    entry = cases[0]
    several = tomlkit.array()
    several.extend(expectation.case for expectation in cases)
    fields: dict[str, Any] = {
        "case": entry.case if len(cases) == 1 else several.multiline(True),
        "engine": entry.engines[0] if len(entry.engines) == 1 else list(entry.engines),
        "stage": entry.stage,
        "status": entry.status,
    }
    if entry.error:
        fields["error"] = entry.error
    if entry.off_by is not None:
        fields["off_by"] = entry.off_by
    fields["reason"] = entry.reason
    if entry.issue:
        fields["issue"] = entry.issue
    return ["[[expect]]", *tomlkit.dumps(fields).splitlines()]
