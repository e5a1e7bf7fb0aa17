"""The beginning and the end of a stream of bytes, whatever its length."""

from __future__ import annotations

HEAD = 16 * 1024
TAIL = 48 * 1024


class Excerpt:
    """The first and the last bytes of a stream: a panic is at the beginning, the reason of a later death at the end."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if (excess := len(self._tail) - TAIL) > 0:
            del self._tail[:excess]
            self._dropped += excess

    def begins_with_panic(self) -> bool:
        """Return whether a panic is in the first bytes; old versions of Rust write one in several pieces."""
        return b" panicked at " in self._head

    def text(self) -> str:
        gap = f"\n[… {self._dropped} bytes left out …]\n".encode() if self._dropped else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")
