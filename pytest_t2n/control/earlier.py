"""Records of earlier sessions: the interrupted session that is resumed, and the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pytest_t2n.control.reads import changed_reads
from pytest_t2n.records.completeness import last_plans
from pytest_t2n.records.file import each_record, encode
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.platform import differences
from pytest_t2n.records.schema import CellLine, GraphLine, PlanLine, Record, RecordError, RunLine
from t2n_core.errors import InputError
from t2n_core.files import replacing

_NAMED = 10


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The part of an interrupted session that the resumed one keeps."""

    cells: list[CellLine]
    """Outlines of the cells that it finished."""
    plan: PlanLine | None
    torn: list[str]
    """A message about the last line, if it is incomplete."""


def read_interrupted(path: Path, now: RunLine, root: Path) -> Interrupted:
    """Return the results of an interrupted session that had the engines and packages of `now`, and read the same files.

    Raises:
        InputError: the file cannot be read, or is from other engines, packages, files below `root` or variables.
    """
    done: dict[str, CellLine] = {}
    words: dict[str, str] = {}
    torn: list[str] = []
    plans: list[PlanLine] = []
    reads: dict[str, str] = {}
    try:
        for record in each_record(path, torn.append):
            if isinstance(record, RunLine):
                _check_same(record, now, path)
            elif isinstance(record, CellLine):
                done[record.nodeid] = outline_of(record, words)
                reads |= record.reads
            elif isinstance(record, PlanLine):
                plans.append(record)
    except (OSError, RecordError) as exc:
        raise InputError(f"--t2n-resume: {exc}") from None
    if changed := changed_reads(reads, root):
        _refuse(path, changed, "state of what its tests read")
    plan = next(reversed(last_plans(plans)), None)
    return Interrupted([line for line in done.values() if _is_done(line)], plan, torn)


def rewrite(path: Path, run: RunLine, earlier: Interrupted) -> set[str]:
    """Rewrite the file with the kept results, after the run line of this session; return the keys of its graphs.

    The file is replaced atomically: its results must also survive an interrupt of this session.
    Raises OSError.
    """
    nodeids = {line.nodeid for line in earlier.cells}
    graphs: set[str] = set()
    head: list[Record] = [run, *([earlier.plan] if earlier.plan is not None else [])]
    last = {record.nodeid: index for index, record in enumerate(_whole_lines(path)) if isinstance(record, CellLine)}
    with replacing(path) as sink:
        for record in head:
            sink.write(f"{encode(record)}\n".encode())
        for index, record in enumerate(_whole_lines(path)):
            if isinstance(record, GraphLine) and record.key not in graphs:
                graphs.add(record.key)
            elif not isinstance(record, CellLine) or record.nodeid not in nodeids or last[record.nodeid] != index:
                continue
            sink.write(f"{encode(record)}\n".encode())
    return graphs


def read_baseline(path: Path, torn: Callable[[str], object]) -> list[Record]:
    """Return the records of an earlier run, without graphs, its cells as outlines; `torn` as in `each_record`.

    Raises:
        InputError: the file cannot be read.
    """
    words: dict[str, str] = {}
    records = each_record(path / MATRIX_FILE if path.is_dir() else path, torn)
    try:
        return [
            outline_of(record, words) if isinstance(record, CellLine) else record
            for record in records
            if not isinstance(record, GraphLine)
        ]
    except (OSError, RecordError) as exc:
        raise InputError(f"--t2n-baseline: {exc}") from None


def _whole_lines(path: Path) -> Iterator[Record]:
    return each_record(path, lambda problem: None)  # an incomplete line was reported at the first reading


def _is_done(line: CellLine) -> bool:
    """Return whether a resumed session can keep the record: the cell ran, and its worker did not die."""
    return line.status != "not_run" and (line.error is None or line.error.error_class != "WorkerCrash")


def _check_same(before: RunLine, now: RunLine, path: Path) -> None:
    """Raise InputError if the results of two runs cannot be in one matrix."""
    shas = {engine.title: engine.sha256 for engine in now.engines}
    changed = [engine.title for engine in before.engines if shas.get(engine.title, engine.sha256) != engine.sha256]
    here = now.platforms[0]
    judged = {engine.platform for engine in before.engines}  # not those on which a bundle was exported
    places = [platform for platform in before.platforms if platform.key in judged]
    changed += [name for platform in places if platform.key != here.key for name in differences(platform, here)]
    if judged - {platform.key for platform in places}:
        changed.append("platform")
    if before.level != now.level:
        changed.append("--t2n-level")
    if before.transforms != now.transforms:
        changed.append("--t2n-transforms")
    if before.source != now.source:
        changed.append("state of the project's Python files")
    if before.options != now.options:
        changed.append("value of an option of another plugin, or of an ini key")
    if changed:
        _refuse(path, changed)


def _refuse(path: Path, changed: Sequence[str], kind: str = "") -> NoReturn:
    """Raise InputError for what changed since the file was written."""
    names = ", ".join(changed[:_NAMED]) + (f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else "")
    raise InputError(f"--t2n-resume: {path} was written with another {kind + ': ' if kind else ''}{names}; start again")
