"""tract's emitter as its forms, quirks, sizes and loops see it: they build operations with it, and it asks them how."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.nnef.loop_emitter import LoopEmitter
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.sizes.dims import Dim, symbols_of
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.graph_facts import GraphFacts
from t2n_core.nnef.tract.traits import traits_of

TRACT_TYPES = {
    "bool": "bool",
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
}


class TractBuilder(LoopEmitter):
    """Builds a graph for one release of tract; `TractEmitter` adds how each operation is written."""

    def __init__(self, spec: Spec, *, name: str = "network", options: WritingOptions = PLAIN) -> None:
        super().__init__(spec, name=name, options=options)
        self.traits = traits_of(spec.version)
        self.facts = GraphFacts()
        self.in_loop = False  # whether this is the body of a loop

    @property
    def streamed_symbol(self) -> str | None:
        """The symbol of the time axis of a stream; None without one, and where it is not known."""
        names = self.graph.sizes.names
        only = names[0] if len(names) == 1 else None
        return (self.options.streamed_symbol or only) if self.options.streaming else None

    def is_streamed(self, size: Dim) -> bool:
        return self.streamed_symbol in symbols_of([size])

    def type_name(self, dtype: np.dtype[Any]) -> str:
        """Return tract's name of a dtype, such as `f32` or `i64`."""
        if dtype.name not in TRACT_TYPES:
            raise self.fail(f"tract has no dtype {dtype}")
        return TRACT_TYPES[dtype.name]
