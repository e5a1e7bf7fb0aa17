"""Explanation of an engine's refusal of sizes, whose own message names neither the archive's range nor the size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.nnef.reading.graph_file import read_graph
from t2n_core.nnef.sizes.range_names import NODE, PROPERTY

_GUARD: Final = re.compile(rf"No possible scenario|\b{NODE}")
_UNKNOWN: Final = "Undetermined symbol"
"""Part of the message where a guard finds no size, as in a stream."""
_EXTERNAL: Final = re.compile(r"^\s*(\w+) = (?:tract_core_)?external(?:<\w+>)?\((.*)\);$", re.MULTILINE)
_SHAPE: Final = re.compile(r"shape = \[([^]]*)\]")
_DECLARED: Final = re.compile(rf'\("{PROPERTY}", "((?:[^"\\]|\\.)*)"\)')
_SCENARIO: Final = re.compile(r"^extension tract_assert range: (.*);$", re.MULTILINE)


def explain(reply: EngineReply, archive: Path, batches: Sequence[Sequence[Array]]) -> EngineReply:
    """Return the reply, in which an error about a size outside the archive's range names that size and the range."""
    guards = {index: text for index, text in reply.refused.items() if _is_guard(text)}
    failed = reply.status == "error" and reply.stage == "run" and _is_guard(reply.message)
    if not guards and not failed:
        return reply
    try:
        text = graph_text(archive)
    except (OSError, ValueError):
        return reply
    refused = {index: f"{_sentence(text, batches[index])}\n{message}" for index, message in guards.items()}
    message = reply.message
    if failed and len(reply.outputs) < len(batches):
        message = f"{_sentence(text, batches[len(reply.outputs)])}\n{message}"
    return replace(reply, message=message, refused={**reply.refused, **refused})


def _is_guard(message: str) -> bool:
    return _GUARD.search(message) is not None and _UNKNOWN not in message


def _sentence(text: str, batch: Sequence[Array]) -> str:
    sizes = ", ".join(dict.fromkeys(f"{name} = {size}" for name, size in _sizes(text, batch)))
    subject = sizes or f"the shapes {', '.join(str(list(array.shape)) for array in batch)}"
    verb = "are" if "," in subject else "is"
    return f"{subject} {verb} outside of the range that this archive holds for: {range_of(text)}"


def range_of(text: str) -> str:
    """Return the range of sizes that a graph's text declares."""
    if match := _DECLARED.search(text):
        return re.sub(r"\\(.)", r"\1", match[1])
    conditions = (condition.replace(" > 0", " >= 1") for condition in _SCENARIO.findall(text))
    return ", ".join(conditions) or "sizes of at least 1"


def _sizes(text: str, batch: Sequence[Array]) -> Iterator[tuple[str, int]]:
    """Yield each symbol that is itself an extent of an input, with its size in this batch."""
    for (_, arguments), array in zip(_EXTERNAL.findall(text), batch, strict=False):
        shape = _SHAPE.search(arguments)
        for extent, size in zip(shape[1].split(",") if shape else [], array.shape, strict=False):
            if extent.strip().isidentifier():
                yield extent.strip(), size


def graph_text(archive: Path) -> str:
    """Return the content of `graph.nnef`. Raises OSError, ValueError."""
    return read_graph(archive).decode("utf-8")


__all__ = ["NODE", "PROPERTY", "explain", "graph_text", "range_of"]
