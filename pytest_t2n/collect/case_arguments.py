"""Arguments of a session that name a case without its engine, or with the engine as the user typed it.

pytest matches parameters as a whole, so that `test_x.py::test_y[a]` finds no cell: the id of a cell ends in its engine.
These arguments are collected without their parameters, and the other tests of their functions are left out afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_t2n.records.cell import Cell


class Argument(NamedTuple):
    """A path, with the names and the parameters of a test if the argument has them."""

    text: str
    path: Path
    names: tuple[str, ...]
    parameters: str

    @classmethod
    def parse(cls, text: str, folder: Path) -> Argument:
        """Return an argument as pytest reads it, from its folder."""
        base, bracket, rest = text.partition("[")
        path, *names = base.split("::")
        if not names:
            return cls(text, _absolute(folder, text), (), "")
        return cls(text, _absolute(folder, path), tuple(names), f"{bracket}{rest}")

    @property
    def base(self) -> str:
        """Return the text without the parameters."""
        return self.text.removesuffix(self.parameters) if self.parameters else self.text

    def names_function_of(self, item: pytest.Item) -> bool:
        """Return whether an item is in what the argument names, whatever its parameters."""
        names = item.nodeid.partition("[")[0].split("::")[1:]
        return self.path in (item.path, *item.path.parents) and tuple(names[: len(self.names)]) == self.names


class CaseArguments:
    """The arguments of a session with parameters, for which all tests of their functions are collected."""

    def __init__(self, arguments: Iterable[str], folder: Path) -> None:
        self._all = [Argument.parse(text, folder) for text in arguments]

    @property
    def collected(self) -> list[str]:
        """Return the arguments to collect instead of the session's."""
        return list(dict.fromkeys(argument.base for argument in self._all))

    def keep_named(self, items: list[pytest.Item], cells: Mapping[pytest.Item, Cell]) -> None:
        """Remove the items that no argument names. Raises pytest.UsageError for an unmatched argument."""
        used_texts: set[str] = set()
        items[:] = [item for item in items if self._is_named(item, cells.get(item), used_texts)]
        missing = [argument.text for argument in self._all if argument.parameters and argument.text not in used_texts]
        if missing:
            raise pytest.UsageError(
                *(f"not found: {text}\n(no test, and no case on an engine of this session)" for text in missing)
            )

    def _is_named(self, item: pytest.Item, cell: Cell | None, used_texts: set[str]) -> bool:
        ids = {_parameters(nodeid) for nodeid in _ids_of(item, cell)}
        naming = [
            argument
            for argument in self._all
            if argument.names_function_of(item) and (argument.parameters or "") in ("", *ids)
        ]
        used_texts.update(argument.text for argument in naming)
        return bool(naming)


def _ids_of(item: pytest.Item, cell: Cell | None) -> Iterator[str]:
    """Yield the id of an item, of its case, and with the version of its engine as the user typed it."""
    yield item.nodeid
    if cell is not None:
        yield cell.case
        if cell.engine.requested:
            head, _, tail = item.nodeid.rpartition(cell.engine.id)
            yield f"{head}{cell.engine.target}-{cell.engine.requested}{tail}"


def _parameters(nodeid: str) -> str:
    _, bracket, rest = nodeid.partition("[")
    return f"{bracket}{rest}"


def _absolute(folder: Path, path: str) -> Path:
    return Path(os.path.normpath(folder / path))
