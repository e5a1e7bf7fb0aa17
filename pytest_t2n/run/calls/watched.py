"""Values that record whether they have been read."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Watched(Generic[T]):
    """A value with a proxy of the same class that records when one of its attributes is read."""

    def __init__(self, value: T) -> None:
        self.value = value
        self.was_read = False
        """True once an attribute of the proxy was read."""

    def proxy(self) -> T:
        """Return an object with the attributes and methods of the value."""
        watch, value = self, self.value

        class Proxy(type(value)):  # type: ignore[misc]
            def __getattribute__(self, name: str) -> Any:
                watch.was_read = True
                return getattr(value, name)

        found: T = object.__new__(Proxy)
        return found
