"""Durations of the cases of an earlier run, by which shards are cut."""

from __future__ import annotations

import math
from pathlib import Path

from pytest_t2n.records.file import each_record
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.schema import CellLine


def read_durations(path: Path) -> dict[str, float]:
    """Return the seconds of each case in all its engines, from a `matrix.jsonl` or a directory with one.

    A time that is equal to the last digit in several cells of a case was spent once: its engines share a capture.
    A case without times is left out. Raises RecordError, OSError.
    """
    times: dict[str, set[tuple[str, float]]] = {}
    for record in each_record(path / MATRIX_FILE if path.is_dir() else path):
        if isinstance(record, CellLine) and record.times:
            times.setdefault(record.case, set()).update(record.times.items())
    return {case: math.fsum(seconds for _, seconds in spent) for case, spent in times.items()}
