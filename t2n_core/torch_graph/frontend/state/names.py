"""Names of the tensors of a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

_CACHE: Final = frozenset({"past_key_values", "cache_params", "past_key_value", "past_state", "cache"})
"""Arguments of models that are called `cache` in an archive, as runners of tract's language models expect."""
_LEFT_OUT: Final = frozenset({"layers", ""})
_SHORT: Final = {"keys": "key", "values": "value"}


def state_name(argument: str, path: Sequence[Any]) -> str:
    """Return the name of the tensor at `path` inside an argument.

    It consists of the argument, attributes and indices: `cache_key_0` for `past_key_values.layers[0].keys`.
    """
    words = [_word(key) for key in path if isinstance(key, str)]
    places = [str(key) for key in path if not isinstance(key, str)]
    parts = ["cache" if argument in _CACHE else argument, *(word for word in words if word not in _LEFT_OUT), *places]
    return re.sub(r"\W", "_", "_".join(parts))


def _word(attribute: str) -> str:
    """Return an attribute without leading underscore, `_cache` and the plural of states."""
    word = attribute.strip("_").removesuffix("_cache").removesuffix("_attention")
    return _SHORT.get(word, re.sub(r"states$", "state", word))
