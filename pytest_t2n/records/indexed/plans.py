"""Plans whose node ids are read one by one: that of a million cells is a line of a hundred megabytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from pytest_t2n.records.schema import CellLine, EndLine, GraphLine, RunLine

_TOKEN = re.compile(rb'\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|([\[\],]))')
_NONE = msgspec.Raw(b"[]")


class RawPlan(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="plan"):
    """A plan line with its lists of node ids as they are in the file; see `PlanLine`."""

    schema: int
    shard: str = ""
    sha256: str = ""
    nodeids: msgspec.Raw = _NONE
    cells: dict[str, msgspec.Raw] = {}
    cut: str = ""
    platform: str = ""

    @property
    def head(self) -> RawPlan:
        """Return the plan without its node ids."""
        return msgspec.structs.replace(self, nodeids=_NONE, cells={})


RAW_DECODER: msgspec.json.Decoder[RunLine | CellLine | RawPlan | GraphLine | EndLine] = msgspec.json.Decoder(
    RunLine | CellLine | RawPlan | GraphLine | EndLine
)
"""Decodes each line of a file of records, plans as `RawPlan`."""


def texts_of(raw: msgspec.Raw) -> Iterator[str]:
    """Yield the strings of a list in JSON. Raises ValueError if it is anything but a list of strings."""
    data = memoryview(raw)
    place, before = 0, b""
    while match := _TOKEN.match(data, place):
        place = match.end()
        text, mark = match.groups()
        if text is not None and before in (b"[", b","):
            before = b"text"
            yield msgspec.json.decode(text, type=str)
        elif mark is not None and (before, mark) in _NEXT:
            before = mark
        else:
            break
    if before != b"]" or bytes(data[place:]).strip():
        raise ValueError("Expected a list of strings")


_NEXT = {(b"", b"["), (b"[", b"]"), (b"text", b","), (b"text", b"]")}
"""Marks that may follow each other."""
