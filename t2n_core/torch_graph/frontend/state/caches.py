"""Caches of transformers, converted for export."""

from __future__ import annotations

import copy
import sys
from typing import Any

from t2n_core.errors import InputError

_OF_THE_WINDOW = frozenset({"sliding_window", "cumulative_length", "_sliding_window_tensor", "record_past"})


def exportable_cache(value: Any) -> Any:
    """Return a cache whose sliding-window layers, which drop old tokens, are replaced by layers that keep all tokens.

    The former count tokens in Python, which an archive would freeze. A model computes the same values with both, since
    its mask hides tokens outside the window. Anything but a cache is returned as it is.

    Raises InputError for a cache that has dropped tokens already.
    """
    library = sys.modules.get("transformers.cache_utils")
    if library is None:
        return value
    if isinstance(value, library.EncoderDecoderCache):
        converted = copy.copy(value)
        converted.self_attention_cache = exportable_cache(value.self_attention_cache)
        return converted
    if isinstance(value, library.Cache):
        converted = copy.copy(value)
        converted.layers = [_layer(layer, library) for layer in value.layers]
        return converted
    return value


def _layer(layer: Any, library: Any) -> Any:
    """Return a layer that keeps all tokens, with the contents of `layer`."""
    without_window = {
        library.DynamicSlidingWindowLayer: library.DynamicLayer,
        library.LinearAttentionAndSlidingWindowAttentionLayer: library.LinearAttentionAndFullAttentionLayer,
    }
    kind = without_window.get(type(layer))
    if kind is None:
        return layer
    if layer.is_initialized and layer.keys.shape[-2] < layer.cumulative_length:
        cache_length, seen = layer.keys.shape[-2], layer.cumulative_length
        raise InputError(
            f"the cache of the example has dropped tokens: it holds {cache_length} of {seen}",
            hint=f"give one with fewer tokens than the window, which is {layer.sliding_window}",
        )
    full = kind.__new__(kind)
    full.__dict__ |= {name: part for name, part in vars(layer).items() if name not in _OF_THE_WINDOW}
    return full
