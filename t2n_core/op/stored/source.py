"""The model with the weights as the archive stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.graph.ir import StoredWeight

StoredWeights: TypeAlias = frozenset[tuple[str, StoredWeight]]
"""Labels of weights, each with its storage in the archive."""


def stored_values(stored: StoredWeights, source: Source) -> dict[str, torch.Tensor]:
    """Return these weights as the engine reads them, in the dtypes of the model.

    Raises InputError for a label that is not a weight of the model.
    """
    missing = sorted({label for label, _ in stored} - source.weights.keys())
    if missing:
        raise InputError(f"stored weights that are not the model's own: {', '.join(missing)}")
    return {label: weight.values for label, weight in stored}


class StoredSource:
    """A model that runs with some weights as the archive stores them; the model itself is unchanged."""

    def __init__(self, source: Source, stored: StoredWeights) -> None:
        """Take the stored weights. Raises InputError for a label that is not a weight of the model."""
        self.name = f"{source.name} with the weights of the archive"
        self._source = source
        self._weights = stored_values(stored, source)

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self._source.run_with(self._weights, args, kwargs)
