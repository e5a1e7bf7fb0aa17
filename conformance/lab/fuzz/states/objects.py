"""Classes that random states consist of, besides tuples, lists and dicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Named(NamedTuple):
    """A tuple with names."""

    a: Any
    b: Any


@dataclass
class Fields:
    """A dataclass."""

    a: Any
    b: Any


class Attributes:
    """An object whose attributes are set in the order of the arguments."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)
