"""Graphs as text, evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2n_core.dialect import Tensor, evaluate
from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.parser import read_text


def outputs_of(
    body: str,
    inputs: Mapping[str, Any],
    *,
    head: str = "",
    outputs: str = "y",
    tensors: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Tensor]:
    """Return the outputs of a graph with this body; float inputs of any size are declared unless the body does so."""
    declared = "".join(
        f"{name} = external<scalar>(shape = {list(np.shape(value))});\n"
        for name, value in inputs.items()
        if f"{name} = external" not in body and f"{name} = tract_core_external" not in body
    )
    text = f"version 1.0;\n{head}\ngraph g({', '.join(inputs)}) -> ({outputs}) {{\n{declared}{body}\n}}"
    return evaluate(ArchiveContent(read_text(text), tensors or {}), inputs, **options)
