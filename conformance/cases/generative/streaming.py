"""Encoders of speech that hear piece by piece: caches of causal convolutions, and of attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf

from conformance.cases.generative.case import GenerativeCase
from t2n_core.generative.calls import cache_argument


@dataclass(frozen=True, slots=True)
class StreamingCase(GenerativeCase):
    """An encoder with its caches."""

    name: str = ""
    """The argument that takes a piece."""
    shape: tuple[int, ...] = ()
    """Extents of a piece."""
    axis: int = -1
    """The axis of time of a piece."""
    options: Mapping[str, Any] | None = None
    """Further arguments of a call that keeps its caches."""
    result: str = "last_hidden_state"
    """The field of the result that the encoder gives."""
    time: int = 1
    """The axis of time of that."""
    pads_first: bool = False
    """True for an encoder that computes its first piece differently, with separate padding: steps begin after it."""
    looks_ahead: bool = False
    """True for an encoder that hears a whole recording otherwise than its pieces: it looks ahead where it can."""

    def pieces(self, count: int) -> list[torch.Tensor]:
        """Return `count` random pieces."""
        return list(torch.randn(count, *self.shape))

    def caches(self, model: Any) -> list[str]:
        """Return the arguments that take the caches, which are fields of the result too."""
        return [cache_argument(model), "padding_cache"]

    def heard(self, model: Any, pieces: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Return what the model itself gives for piece after piece, and a call with the caches that it leaves."""
        call: dict[str, Any] = dict(self.options or {})
        results = []
        for piece in pieces:
            with torch.no_grad():
                output = model(**{self.name: piece}, **call)
            results.append(getattr(output, self.result))
            call |= {cache: plain_cache(getattr(output, cache)) for cache in self.caches(model)}
        return results, call


def plain_cache(cache: Any) -> Any:
    """Return a cache whose sizes are Python integers: Mimi's are buffers of its convolutions."""
    sizes = getattr(cache, "per_layer_padding", None)
    if sizes is not None:
        cache.per_layer_padding = [int(size) for size in sizes]
    return cache


def _voxtral() -> Any:
    config = hf.VoxtralRealtimeEncoderConfig(
        num_mel_bins=8, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, head_dim=8, sliding_window=6,
    )  # fmt: skip
    return hf.AutoModel.from_config(config)


def _mimi() -> Any:
    config = hf.MimiEncoderConfig(
        hidden_size=32, num_filters=4, num_residual_layers=1, upsampling_ratios=[4, 2], codebook_dim=8,
        vector_quantization_hidden_dimension=8, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        head_dim=8, intermediate_size=48, sampling_rate=160, frame_rate=10.0, sliding_window=6,
    )  # fmt: skip
    return hf.AutoModel.from_config(config)


def _nemotron() -> Any:
    config = hf.NemotronAsrStreamingEncoderConfig(
        num_mel_bins=8, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        conv_kernel_size=5, subsampling_conv_channels=8, sliding_window=6, default_num_lookahead_tokens=1,
    )  # fmt: skip
    return hf.AutoModel.from_config(config)


CASES = {
    "voxtral-realtime": StreamingCase(
        _voxtral,
        spread=1.0,
        name="input_features",
        shape=(1, 8, 4),
        options={"use_cache": True, "use_padding_cache": True},
    ),
    "mimi": StreamingCase(
        _mimi,
        spread=1.0,
        name="input_values",
        shape=(1, 1, 32),
        options={"use_streaming": True},
        pads_first=True,
        result="latents",
        time=2,
    ),
    "nemotron-asr": StreamingCase(
        _nemotron,
        spread=1.0,
        name="input_features",
        shape=(1, 16, 8),
        axis=1,
        options={"use_cache": True},
        pads_first=True,
        looks_ahead=True,
    ),
}
"""By name."""
