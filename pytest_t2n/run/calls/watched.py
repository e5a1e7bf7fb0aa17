"""Values that note whether anybody has read them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Watched(Generic[T]):
    """A value, with a stand-in of the same class that notes when one of its attributes is read."""

    def __init__(self, value: T) -> None:
        self.value = value
        self.was_read = False
        """True once an attribute of the stand-in was read."""

    def stand_in(self) -> T:
        """Return an object that has the attributes and methods of the value."""
        watch, value = self, self.value

        class StandIn(type(value)):  # type: ignore[misc]
            def __getattribute__(self, name: str) -> Any:
                watch.was_read = True
                return getattr(value, name)

        found: T = object.__new__(StandIn)
        return found


__all__ = ["Watched"]
