"""The base of what a torch graph holds as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Data:
    """A named input, result, weight or constant of a graph."""

    name: str


__all__ = ["Data"]
