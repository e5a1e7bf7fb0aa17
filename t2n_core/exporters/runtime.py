"""onnxruntime as an engine beside tract: whether an ONNX file is right in itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.errors import T2NError
from t2n_core.extras import require
from t2n_core.onnx_file.references import RUNTIME
from t2n_core.onnx_file.samples import reference_samples


class OnnxRuntimeEngine:
    """onnxruntime in a separate process, without its graph optimisations; implements `Engine`."""

    name = RUNTIME
    kept_states = None

    @property
    def version(self) -> str:
        """Return the version of onnxruntime. Raises MissingPackageError without it."""
        require(RUNTIME, "onnx", RUNTIME)
        return metadata.version(RUNTIME)

    def run(
        self,
        archive: Path,
        batches: Sequence[Sequence[Array]],
        *,
        timeout: float = 60.0,
        keep_going: bool = False,
        **_: Any,
    ) -> EngineReply:
        """Run each batch; with `keep_going` the batches after a refused one, too. `timeout` is in seconds."""
        outputs: list[tuple[Array, ...]] = []
        refused: dict[int, str] = {}
        began = time.perf_counter()
        for index, batch in enumerate(batches):
            try:
                answer = reference_samples(archive, [tuple(batch)], references=[RUNTIME], seconds=timeout)
            except T2NError as wrong:
                if not keep_going:
                    return EngineReply("error", "run", wrong.message, outputs=tuple(outputs))
                refused[index] = wrong.message
                outputs.append(())
            else:
                outputs.append(answer.samples[0].expected)
        return EngineReply(
            "ok", "run", outputs=tuple(outputs), times={"run": time.perf_counter() - began}, refused=refused
        )

    def close(self) -> None:
        """Do nothing: the process serves all models."""
