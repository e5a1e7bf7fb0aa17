"""The interface of engines: an engine takes one archive and some batches of inputs, and returns one reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]
ReplyStatus = Literal["ok", "error", "crash", "timeout", "oom"]
EngineStage = Literal["load", "optimise", "run"]
OPERATORS = "operators"
"""Fact of a reply: the number of nodes of each operator in the optimised graph."""
OPERATORS_UNKNOWN = "operators_unknown"
"""Fact of a reply: the reason why there are none; empty if there are."""
DIED_LISTING = "the engine's process ended while it listed its operators"
"""This reason, if the engine cannot even list them."""


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """A call in a State that was kept from earlier calls, whose outputs differ from those in a new State."""

    call: int
    """Index of the call among the requested ones."""
    outputs: tuple[Array, ...] = ()
    message: str = ""
    """The engine's error, if there was one."""


@dataclass(frozen=True, slots=True)
class EngineReply:
    """One reply of an engine. A failure is a value here, never an exception: it becomes the outcome of one cell."""

    status: ReplyStatus
    stage: EngineStage
    """The last stage that was entered: where it failed, unless the status is `ok`."""
    message: str = ""
    """The cause chain of an error; for a crash, the first panic line and its message."""
    stderr: str = ""
    outputs: tuple[tuple[Array, ...], ...] = ()
    """One tuple per batch that finished, in the order of the graph's outputs; empty for a refused one."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Seconds: `load`, `optimise`, and `run` for all batches together."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts that the engine reports about the model, such as its inputs and outputs as text."""
    widened: bool = False
    """True if outputs have a wider dtype than the graph's, because their channel lacks it: float16 as float32 from a
    command line, all integers as int64 from the Khronos tools."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """The error of each batch that the engine rejected, by its index; only if the job continues after errors."""
    changed: tuple[ChangedCall, ...] = ()
    """Calls in kept States whose outputs differ from those in a new one; only if the job requested such calls."""
    further: tuple[EngineReply, ...] = ()
    """The replies on further paths that were entered, in order; outputs that equal this reply's bit by bit are the same
    objects."""


@dataclass(frozen=True, slots=True)
class KeptStates:
    """The behaviour of an engine in a State that is kept from call to call."""

    resets_scans: bool
    """True if an archive can request scans that restart with each call."""
    resizes: bool
    """True if the calls may have different sizes."""


class Engine(Protocol):
    """An inference engine that runs archives in a separate process."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def kept_states(self) -> KeptStates | None:
        """Return the behaviour of States that the engine keeps; None if it keeps none."""
        ...

    def run(self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0) -> EngineReply:
        """Load `archive` once, run each batch (inputs in graph order); never raises because of the engine."""
        ...

    def close(self) -> None: ...
