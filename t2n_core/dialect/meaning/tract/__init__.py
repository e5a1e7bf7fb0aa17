"""The operators that tract adds to the standard: tract_core, tract_transformers, tract_extra, tract_pulse."""

from t2n_core.dialect.meaning.tract import (
    activation,
    attention,
    experts,
    gathering,
    linear,
    logic,
    normalisation,
    quantised,
    recurrent,
    reduction,
    resampling,
    shape,
    spectral,
    streaming,
)

__all__ = [
    "activation",
    "attention",
    "experts",
    "gathering",
    "linear",
    "logic",
    "normalisation",
    "quantised",
    "recurrent",
    "reduction",
    "resampling",
    "shape",
    "spectral",
    "streaming",
]
