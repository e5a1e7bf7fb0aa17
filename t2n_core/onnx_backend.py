"""ONNX's backend interface for every release of tract, so that ONNX's own test runner takes any of them.

    from onnx.backend.test import BackendTest
    from t2n_core.onnx_backend import backend_for

    tests = BackendTest(backend_for("0.22.4"), __name__).include("test_lstm_.*")

The module itself is a backend too, which takes the newest release unless `prepare` gets another.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from t2n_core.engine import engine_for, resolve_engines
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.errors import engine_error
from t2n_core.extras import importing
from t2n_core.scratch import scratch_folder

with importing("t2n_core.onnx_backend"):
    import onnx
    from onnx.backend.base import Backend, BackendRep

NEWEST: Final = "latest"


class TractBackend(Backend):
    """A release of tract. Each run is in a separate process, so that a crash is an error like any other."""

    release: ClassVar[str] = NEWEST

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> TractModel:
        """Return a model that the release has loaded and optimised; the option `release` names another.

        Raises EngineError if it refuses the model.
        """
        (resolved,) = resolve_engines(options.get("release", cls.release))
        loaded = TractModel(model, resolved)
        loaded.ask([])
        return loaded

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """Return the outputs of a model. Raises EngineError."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, *_: Any, **__: Any) -> tuple[Any, ...]:
        """Raise NotImplementedError: a release runs models only."""
        raise NotImplementedError("tract runs models: make one of the node with onnx.helper.make_model")

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether this is the processor."""
        return device == "CPU"


class TractModel(BackendRep):
    """A model in a release."""

    def __init__(self, model: onnx.ModelProto, resolved: ResolvedEngine) -> None:
        self._model, self._resolved = model.SerializeToString(), resolved

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Return the outputs for a sequence of inputs in order. Raises EngineError, and InputError for no tensors."""
        (outputs,) = self.ask([[np.asarray(value) for value in inputs]]).outputs
        return outputs

    def ask(self, batches: Sequence[Sequence[np.ndarray[Any, Any]]]) -> EngineReply:
        """Return the reply to batches. Raises EngineError for one without outputs."""
        with scratch_folder() as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(self._model)
            reply = engine_for(self._resolved).run(path, batches)
        if reply.status == "ok":
            return reply
        raise engine_error(reply.status, reply.stage)(reply.message, target=f"tract {self._resolved.version}")


def backend_for(release: str) -> type[TractBackend]:
    """Return the backend of one release, such as `0.22.4`, or `latest`."""
    return type("TractBackend", (TractBackend,), {"release": release})


prepare = TractBackend.prepare
run_model = TractBackend.run_model
run_node = TractBackend.run_node
supports_device = TractBackend.supports_device
