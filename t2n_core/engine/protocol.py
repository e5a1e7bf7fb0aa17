"""The interface of every engine: it takes one archive and some batches of inputs, and returns one reply."""

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
class ChangedCall:
    """A call in a State that was kept from earlier calls, with other outputs than the same inputs in a fresh one."""

    call: int
    """Index of the call among those that were asked for."""
    outputs: tuple[Array, ...] = ()
    message: str = ""
    """The engine's error, where it answered with one."""


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
    """Facts that the engine reports about the model, such as its inputs and outputs as text."""
    widened: bool = False
    """True if outputs come in a wider dtype than the graph's, for lack of another in their channel: float16 as float32
    from a command line, all integers as int64 from the Khronos tools."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """The error of each batch that the engine rejected, by its index; only if the job is to keep going."""
    changed: tuple[ChangedCall, ...] = ()
    """Calls in kept States that gave other outputs than in a fresh one; only of an engine that was asked for such."""


@dataclass(frozen=True, slots=True)
class KeptStates:
    """The behaviour of an engine in a State that is kept from call to call."""

    resets_scans: bool
    """True if an archive can ask for scans that begin anew with each call."""
    resizes: bool
    """True if the calls may have different sizes."""


class Engine(Protocol):
    """A foreign engine that runs archives in a process of its own."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def kept_states(self) -> KeptStates | None:
        """Return what the engine does with States that it keeps; None if it keeps none."""
        ...

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


__all__ = ["Array", "ChangedCall", "Engine", "EngineReply", "EngineStage", "KeptStates", "ReplyStatus"]
