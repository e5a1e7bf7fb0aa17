"""The table of verdicts: for each case its status by ranges of releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from conformance.dialect.findings import ranges_text, releases_of

Status = Literal["right", "rounding", "refused", "wrong", "died"]
STATUSES: Final[tuple[Status, ...]] = ("right", "rounding", "refused", "wrong", "died")
FILE: Final = Path(__file__).with_name("verdicts.tsv")
_HEAD: Final = "case\toperator\topset\tverdicts\tdeviation\trefusal"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case in a release."""

    status: Status
    reason: str = ""
    """The engine's error, or how far its outputs are off."""


@dataclass(frozen=True)
class Row:
    """A case with its status in each release."""

    case: str
    operator: str
    opset: int
    statuses: Mapping[str, Status]
    deviation: str = ""
    """How far the newest release is off that is not right but has outputs."""
    refusal: str = ""
    """The kind of the reason for which the newest release refuses the case; empty if it does not."""


@dataclass(frozen=True)
class Table:
    """All cases of a version of onnx in all releases."""

    onnx: str
    releases: tuple[str, ...]
    left_out: Mapping[str, int]
    """How many cases have other values than tensors, by the type of the first such value."""
    rows: tuple[Row, ...]


def write(table: Table, file: Path = FILE) -> None:
    """Write a table as text."""
    left_out = " ".join(f"{name}:{count}" for name, count in table.left_out.items())
    lines = [f"onnx {table.onnx}", " ".join(table.releases), left_out, _HEAD]
    for row in table.rows:
        verdicts = "; ".join(f"{status} {text}" for status, text in spans(row.statuses))
        lines.append("\t".join([row.case, row.operator, str(row.opset), verdicts, row.deviation, row.refusal]))
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")


def read(file: Path = FILE) -> Table:
    """Return the table of a file."""
    version, releases, left_out, _, *lines = file.read_text("utf-8").splitlines()
    order = releases.split()
    rows = []
    for line in lines:
        case, operator, opset, verdicts, *notes = line.split("\t")
        statuses: dict[str, Status] = {}
        for part in verdicts.split("; "):
            status, _, texts = part.partition(" ")
            assert status in STATUSES
            statuses |= dict.fromkeys(releases_of(texts, order), status)  # type: ignore[arg-type]
        rows.append(Row(case, operator, int(opset), {release: statuses[release] for release in order}, *notes))
    counts = {name: int(count) for name, _, count in (each.partition(":") for each in left_out.split())}
    return Table(version.removeprefix("onnx "), tuple(order), counts, tuple(rows))


def spans(statuses: Mapping[str, Status]) -> list[tuple[Status, str]]:
    """Return each status with its ranges of releases, in the order of their first ones."""
    order = list(statuses)
    distinct_statuses = dict.fromkeys(statuses.values())
    return [
        (status, ranges_text((release for release in order if statuses[release] == status), order))
        for status in distinct_statuses
    ]


def totals(rows: Iterable[Row], release: str) -> Counter[Status]:
    """Return how many rows have each status in a release."""
    return Counter(row.statuses[release] for row in rows)
