"""Modules kept whole as one node of the torch graph."""

from t2n_core.op.custom_extractors.base import ModuleInfoExtractor
from t2n_core.op.custom_extractors.rnn import (
    GRUCellExtractor,
    GRUExtractor,
    LSTMCellExtractor,
    LSTMExtractor,
    RNNCellExtractor,
    RNNExtractor,
)

__all__ = [
    "GRUCellExtractor",
    "GRUExtractor",
    "LSTMCellExtractor",
    "LSTMExtractor",
    "ModuleInfoExtractor",
    "RNNCellExtractor",
    "RNNExtractor",
]
