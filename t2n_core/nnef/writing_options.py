"""Choices between forms that are all right, made by a user through the target and read where statements are written."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from t2n_core.nnef.tract.precision import PrecisionPlan

WeightCompression: TypeAlias = Literal["q4_0", "q4_0_with_embeddings"]


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """Choices between forms of operators; the defaults compute what PyTorch does, with operators of every version."""

    attention_in_f32: bool = False
    """Inside the engine's own attention operator, float16 is accumulated in float32; the plain form always is."""
    linear_accumulation_in_f32: bool = False
    """Products of float16 are computed and summed in float32, then rounded."""
    norm_in_f32: bool = False
    """A batch norm of float16 whose statistics are weights is computed in float32 as well."""
    reify_sdpa: bool = False
    """Attention as the engine's own operator, where the version has it and the operator can express the call."""
    upsample_with_debox: bool = False
    """Nearest upsampling by whole factors as `debox`, where the version has it."""
    weight_compression: WeightCompression | None = None
    """Weights of linear layers in blocks of 4 bits."""
    weights: tuple[tuple[str, bool], ...] = ()
    """Patterns of weights in the order in which they are asked, each with whether these are stored as float16."""
    precision: PrecisionPlan | None = None
    """Operators that are computed in float16, of a model in float32."""
    streaming: bool = False
    """Leave out forms that the engine cannot run as a stream."""

    def stores_as_half(self, label: str) -> bool:
        """Return whether the first pattern that fits a weight's name, or a module that it is in, wants float16."""
        fits = (
            half for pattern, half in self.weights if fnmatchcase(label, pattern) or fnmatchcase(label, f"{pattern}.*")
        )
        return next(fits, False)

    @property
    def compresses_embeddings(self) -> bool:
        return self.weight_compression == "q4_0_with_embeddings"


PLAIN = WritingOptions()

__all__ = ["PLAIN", "WeightCompression", "WritingOptions"]
