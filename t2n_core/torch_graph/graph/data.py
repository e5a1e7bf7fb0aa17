"""Data of a torch graph other than tensors: the base class, lists of arguments, and the list of all nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Data:
    """A named input, result, weight or constant of a graph."""

    name: str


@dataclass(init=False, eq=False, repr=False)
class FixedTensorList(tuple[Any, ...]):
    """A list of tensors whose length is known: an argument such as `cat`'s, or the results of `split`.

    >>> parts = FixedTensorList(name="parts", data=[Data("a"), Data("b")])
    >>> parts.name, [part.name for part in parts.data]
    ('parts', ['a', 'b'])
    """

    name: str
    data: tuple[Any, ...]

    def __new__(cls, data: Iterable[Any] = (), name: str = "") -> FixedTensorList:
        made = super().__new__(cls, data)
        made.name, made.data = name, tuple(made)
        return made


class DataNodes(list[Any]):
    """The tensors of a graph, which change with its operators, and the tensors added to the list."""

    def __init__(self) -> None:
        super().__init__()
        self._of_graph: list[Any] = []

    def update(self, of_graph: list[Any]) -> None:
        """Replace the tensors of the graph by these, and keep the added ones after them."""
        listed = {id(node) for node in (*self._of_graph, *of_graph)}
        self[:] = [*of_graph, *(node for node in self if id(node) not in listed)]
        self._of_graph = of_graph
