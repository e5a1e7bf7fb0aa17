"""The model that computes with the numbers of the archive's weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.graph.ir import StoredWeight
from t2n_core.torch_graph.ways_in.sources import Source

StoredWeights: TypeAlias = frozenset[tuple[str, StoredWeight]]
"""Labels of weights, each with the form that the archive holds it in."""


def numbers_of(stored: StoredWeights, source: Source) -> dict[str, torch.Tensor]:
    """Return the numbers that the engine reads of these weights, in the dtypes of the model.

    Raises InputError for a label that is no weight of the model.
    """
    missing = sorted({label for label, _ in stored} - source.weights.keys())
    if missing:
        raise InputError(f"stored weights that are not the model's own: {', '.join(missing)}")
    return {label: weight.numbers for label, weight in stored}


class StoredSource:
    """A model that runs with some weights as the archive holds them; the model itself stays unchanged."""

    def __init__(self, source: Source, stored: StoredWeights) -> None:
        """Take the stored weights. Raises InputError for a label that is no weight of the model."""
        self.name = f"{source.name} with the weights of the archive"
        self._source = source
        self._weights = numbers_of(stored, source)

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self._source.run_with(self._weights, args, kwargs)


__all__ = ["StoredSource", "StoredWeights", "numbers_of"]
