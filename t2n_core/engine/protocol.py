"""What every engine looks like from outside: one archive and some batches of inputs in, one reply out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]
ReplyStatus = Literal["ok", "error", "crash", "timeout", "oom"]
EngineStage = Literal["load", "optimise", "run"]


@dataclass(frozen=True, slots=True)
class EngineReply:
    """One answer of an engine. A failure is a value here, never an exception: it becomes the outcome of one cell."""

    status: ReplyStatus
    stage: EngineStage
    """The last stage that was entered: where it failed, unless the status is `ok`."""
    message: str = ""
    """Cause chain of an error; first panic line and its message of a crash."""
    stderr: str = ""
    outputs: tuple[tuple[Array, ...], ...] = ()
    """One tuple per batch that finished, in the order of the graph's outputs; empty for one that was refused."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Seconds: `load`, `optimise`, and `run` for all batches together."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the engine says of the model: input and output facts as text."""
    widened: bool = False
    """Outputs of a narrow dtype came in a wider one, since the way they took has no other: halves as float32 out of a
    command line, all integers as int64 out of the Khronos tools."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """The error of each batch that the engine did not take, by its index; only where the job was to keep going."""


class Engine(Protocol):
    """A foreign engine that runs archives in a process of its own."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def run(
        self,
        archive: Path,
        batches: Sequence[Sequence[Array]],
        *,
        timeout: float = 60.0,
    ) -> EngineReply:
        """Load `archive` once, run each batch (inputs in graph order); never raises for what the engine does."""
        ...

    def close(self) -> None: ...


__all__ = ["Array", "Engine", "EngineReply", "EngineStage", "ReplyStatus"]
