"""Planted faults and what became of them: their journal, and tables of how many were found."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

from conformance.lab.command import command_parser
from conformance.lab.pages.tables import figures_table
from conformance.lab.rows import RowFile

CAUGHT: Final = "caught"


@dataclass(frozen=True, slots=True)
class Trial:
    """A fault that was planted, what should become of it, and what did."""

    kind: str
    where: str
    expected: str
    found: str

    @property
    def is_right(self) -> bool:
        """Return whether the fault was found as it should be."""
        return self.found == self.expected


T = TypeVar("T", bound=Trial)


def plant_parser(module: str, text: str | None, *, draws: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a command that plants faults: `--json`, and `--seed` where faults are drawn."""
    parser = command_parser(f"conformance.lab.plant.{module}", text)
    if draws:
        parser.add_argument("--seed", type=int, default=1, help="which faults are drawn; default 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each fault and what became of it, one a line")
    return parser


def journal(trials: Iterable[T], path: Path | None) -> Iterator[T]:
    """Yield trials as they come, each written to a file."""
    rows = RowFile(path, anew=True)
    for trial in trials:
        rows.add(asdict(trial))
        yield trial


def by_kind(trials: Sequence[T], kinds: Iterable[str]) -> list[tuple[str, Sequence[T]]]:
    """Return the trials of each kind under its name, and all of them."""
    return [*((kind, [trial for trial in trials if trial.kind == kind]) for kind in kinds), ("all", trials)]


def counts_table(
    groups: Iterable[tuple[str, Sequence[T]]], columns: Mapping[str, Callable[[Sequence[T]], object]], name: str = ""
) -> str:
    """Return a table with a line for each group of trials."""
    rows = [(group, *(str(column(trials)) for column in columns.values())) for group, trials in groups]
    return figures_table((name, *columns), rows)


def share(part: int, total: int) -> str:
    """Return a part in percent; an empty text for a part of nothing."""
    return f"{part / total:.1%}" if total else ""
