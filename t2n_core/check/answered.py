"""An engine that has run already: a check compares what it answered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2n_core.engine.protocol import EngineReply


@dataclass(frozen=True, slots=True)
class Answered:
    """One reply, as an engine."""

    version: str
    reply: EngineReply
    name: str = "tract"
    kept_states: None = None

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> EngineReply:
        return self.reply

    def close(self) -> None:
        """Do nothing: this engine holds no process."""


__all__ = ["Answered"]
