"""The archives of a generating model in one folder, with the model and its plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from t2n_core.engine.protocol import Array
from t2n_core.errors import engine_error
from t2n_core.export.result import ExportResult
from t2n_core.generative.calls import CHOSEN
from t2n_core.generative.parts import Plan
from t2n_core.parity.state_pairs import StatePair


@dataclass(frozen=True, slots=True)
class GenerativeArchives:
    """The archives of a generating model in one folder."""

    directory: Path
    model: nn.Module
    plan: Plan
    decoder: ExportResult
    encoder: ExportResult | None = None
    step: ExportResult | None = None
    """The decoder for a single token; its inputs and outputs have the names of the decoder's."""

    @property
    def parts(self) -> dict[str, ExportResult]:
        """Return the archives by name, in the order in which they run."""
        archives = {"encoder": self.encoder, "decoder": self.decoder, "step": self.step}
        return {name: part for name, part in archives.items() if part is not None}

    @property
    def state(self) -> tuple[StatePair, ...]:
        """Return the decoder's state."""
        return self.decoder.state

    def fixed(self, timeout: float = 60.0) -> dict[str, Array]:
        """Return the decoder's inputs that are the same in each step, by name: an encoder's outputs for the example.

        If the positions of logits are an input, it is the last position. Raises EngineError.
        """
        last = {CHOSEN: np.array([-1])} if self.plan.call.chosen else {}
        return {**self.encoded(timeout), **last}

    def encoded(self, timeout: float = 60.0) -> dict[str, Array]:
        """Return what the encoder's archive gives for the example, by the names of the decoder's inputs.

        Nothing for a model without an encoder. Raises EngineError.
        """
        if self.encoder is None:
            return {}
        engine = self.encoder.target.engine()
        reply = engine.run(self.encoder.archive, [self.encoder.samples[0].inputs], timeout=timeout)
        if reply.status != "ok":
            raise engine_error(reply.status, reply.stage)(f"the encoder: {reply.message}")
        outputs = dict(zip(self.encoder.output_names, reply.outputs[0], strict=True))
        return {name: outputs[name] for name in self.decoder.input_names if name in outputs}
