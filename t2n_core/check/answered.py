"""A recorded reply instead of an engine, for checks of an engine that has already run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2n_core.engine.protocol import EngineReply


@dataclass(frozen=True, slots=True)
class Answered:
    """An engine whose reply is already known."""

    version: str
    reply: EngineReply
    name: str = "tract"
    kept_states: None = None

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> EngineReply:
        return self.reply

    def close(self) -> None:
        """Do nothing: this engine holds no process."""
