"""The choice of the emitter for a target version."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.khronos.emitter import KhronosEmitter
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.emitter import TractEmitter


def emitter_for(spec: Spec, name: str = "network", options: WritingOptions = PLAIN) -> Emitter:
    """Return an emitter with an empty graph for a target version."""
    return {"tract": TractEmitter, "khronos": KhronosEmitter}[spec.target](spec, name=name, options=options)
