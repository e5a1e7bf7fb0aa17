"""The emitter of flat NNEF as its forms and its arithmetic of integers see it."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.khronos.magnitudes import Magnitudes
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.spec import Spec


class KhronosBuilder(Emitter):
    """Builds a graph of flat NNEF 1.0; `KhronosEmitter` adds how each operation is written."""

    truth_dtype = FLOAT32  # there is no arithmetic of integers
    widest = FLOAT32

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        super().__init__(spec, name=name, options=options)
        self.magnitudes = Magnitudes()
