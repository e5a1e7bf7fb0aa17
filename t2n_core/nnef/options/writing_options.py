"""Choices between valid lowerings, made by a user through the target and read by rules and emitters."""

from __future__ import annotations

from dataclasses import dataclass

from t2n_core.nnef.options.precision import PrecisionPlan
from t2n_core.nnef.options.weight_choice import WeightChoice


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """Choices between lowerings; the defaults compute what PyTorch does, with operators of every version."""

    attention_in_f32: bool = False
    """The engine's own attention operator accumulates float16 in float32; the plain formula always does."""
    linear_accumulation_in_f32: bool = False
    """Products of float16 are computed and summed in float32, then rounded."""
    norm_in_f32: bool = False
    """A batch norm of float16 whose statistics are weights is computed in float32 as well."""
    reify_sdpa: bool = False
    """Attention as the engine's own operator, where the version has it and the operator can express the call."""
    upsample_with_debox: bool = False
    """Nearest upsampling by integer factors as `debox`, where the version has it."""
    keep_nan: bool = False
    """A NaN goes through activations, clamps and the larger or smaller one of two as in PyTorch."""
    weights: WeightChoice = ()
    """The storage formats of weights."""
    precision: PrecisionPlan | None = None
    """Plan of the operators of a float32 model that are computed in float16."""
    streaming: bool = False
    """Avoid lowerings that the engine cannot run as a stream."""
    streamed_symbol: str | None = None
    """The symbol of the time axis of a stream; None where the only dynamic axis is that, or it is not known."""

    @property
    def accumulates_in_f32(self) -> bool:
        """Return whether products of float16 are computed and summed in float32, by option or by plan."""
        by_plan = self.precision is not None and self.precision.accumulation == "float32"
        return by_plan or self.linear_accumulation_in_f32


PLAIN = WritingOptions()
