"""Weights that the archive holds in another form than the model, and the model that computes with their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import torch

from t2n_core.errors import InputError
from t2n_core.op.compression import dequantised
from t2n_core.op.halves import rounded
from t2n_core.torch_graph.ways_in.sources import Source

StoredForm: TypeAlias = Literal["q4_0", "float16"]
StoredWeights: TypeAlias = frozenset[tuple[str, StoredForm]]
"""Labels of weights, each with the form that the archive holds it in."""


def numbers_of(stored: StoredWeights, source: Source) -> dict[str, torch.Tensor]:
    """Return the numbers that the engine reads of these weights, in the dtypes of the model.

    Raises InputError for a label that is no weight of the model.
    """
    known = source.weights
    missing = sorted({label for label, _ in stored} - known.keys())
    if missing:
        raise InputError(f"stored weights that are not the model's own: {', '.join(missing)}")
    return {label: rounded(known[label]) if form == "float16" else dequantised(known[label]) for label, form in stored}


class StoredSource:
    """A model that runs with some weights as the archive holds them; the model itself stays unchanged."""

    def __init__(self, source: Source, stored: StoredWeights) -> None:
        """Take the stored weights. Raises InputError for a label that is no weight of the model."""
        self.name = f"{source.name} with the weights of the archive"
        self._source = source
        self._weights = numbers_of(stored, source)

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self._source.run_with(self._weights, args, kwargs)


__all__ = ["StoredForm", "StoredSource", "StoredWeights", "numbers_of"]
