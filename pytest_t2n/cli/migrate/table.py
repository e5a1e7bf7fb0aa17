"""The table of moves: each public name, argument, option and command of torch-to-nnef, and what to write instead."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

OLD = "torch_to_nnef"
_FILE = Path(__file__).with_name("names.tsv")
_REST = ".*"


class Move(NamedTuple):
    """One line of the table."""

    kind: str
    """`name`, `keyword`, `attribute` (of an object), `command`, or `option` of t2n_export_llm_to_tract."""
    old: str
    """A dotted name in the defining module; a name that ends in `.*` is for all other names of a module."""
    new: str
    change: str
    """`same`, `import` (the import alone changes), `rename`, `drop` (leave it out), `error` or `person`
    (someone has to write it anew); `rename value` and `drop value` for options that take a value."""
    also: str
    """The modules that export the name too."""
    note: str

    @property
    def advice(self) -> str:
        """Return a sentence that says what to write instead."""
        if self.change == "drop" and self.kind == "keyword":
            return f"leave it out: {self.note}"
        head = f"write `{self.new}`" if self.new and self.change == "import" else ""
        head = f"see `{self.new}`" if self.new and self.change == "person" and self.new not in self.note else head
        return "; ".join(part for part in (self.note, head) if part) or "nothing changes"


@cache
def moves() -> tuple[Move, ...]:
    """Return all lines of the table, in its order."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return tuple(Move(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def move_of(dotted: str) -> Move:
    """Return the line for a dotted name of torch-to-nnef, or for the object that it is an attribute of."""
    return next(_lines_for(dotted))


def defined_as(dotted: str) -> str:
    """Return the name in the defining module, for a name of either package."""
    homes = _homes()
    for head in _heads(dotted):
        if head in homes:
            return homes[head] + dotted[len(head) :]
    return dotted


def is_module(dotted: str) -> bool:
    """Return whether a name is a module of torch-to-nnef that has names in the table."""
    return any(name.startswith(f"{dotted}.") for name in _homes()) and dotted not in _homes()


@cache
def keywords() -> dict[str, Move]:
    """Return the lines of arguments: `torch_to_nnef.export.export_model_to_nnef(log_level=)` -> its line."""
    return {move.old: move for move in moves() if move.kind == "keyword"}


@cache
def _names() -> dict[str, Move]:
    return {move.old: move for move in moves() if move.kind == "name"}


@cache
def _homes() -> dict[str, str]:
    """Return the defining name by name, also for new names and names in modules that re-export."""
    homes: dict[str, str] = {}
    for move in moves():
        if move.kind == "name" and not move.old.endswith(_REST):
            last = move.old.rpartition(".")[2]
            if move.change == "import":
                homes.setdefault(move.new, move.old)
            homes.update({f"{module}.{last}": move.old for module in (*move.also.split(), move.old.rpartition(".")[0])})
    return homes


def _lines_for(dotted: str) -> Iterator[Move]:
    moves_by_name, name = _names(), defined_as(dotted)
    for ending in ("", _REST):
        yield from (moves_by_name[head + ending] for head in _heads(name) if head + ending in moves_by_name)


def _heads(dotted: str) -> Iterator[str]:
    """Yield a dotted name, and what is left of it without its last parts."""
    while dotted:
        yield dotted
        dotted = dotted.rpartition(".")[0]
