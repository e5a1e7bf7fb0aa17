"""Measure the loss from weight compression against the model in float32."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.generative.archives import GenerativeArchives
from t2n_core.parity.generation.cache_loss import CacheLoss, cache_loss
from t2n_core.parity.generation.loss import WeightLoss, archive_logits, weight_loss

LENGTH: Final = 128
"""Most tokens of a generated text."""


def measure_loss(
    result: GenerativeArchives, original: nn.Module | None = None, text: Any = None, *, timeout: float = 60.0
) -> WeightLoss:
    """Return the loss from the weights of an archive, on a text.

    The archive runs in its target's engine. `original` is the model in float32, with the weights before compression;
    by default the exported model, converted to float32. `text` are token ids `[S]`; by default the model in float32
    samples up to 128 of them from its own distribution. `timeout` is in seconds for each step.

    Raises:
        InputError: a text of fewer than two tokens or of more than the model takes, a model of another vocabulary, or a
            target without generation.
        EngineError: the archive did not run.
    """
    engine = result.decoder.target.engine()
    if not isinstance(engine, TractRunner):
        raise InputError(f"{engine.name} has no sessions, so that it cannot generate: tract has")
    model = in_float32(result.model if original is None else original)
    inputs = {} if result.plan.encoder is None else _widen(result.plan.encoder.arguments)
    most = result.plan.limits.most
    given = None if text is None else torch.as_tensor(text, dtype=torch.int64).reshape(-1)
    if given is not None and not 2 <= len(given) <= (most or len(given)):
        bounds = "two tokens or more" if most is None else f"2 to {most} tokens"
        raise InputError(f"the text has {len(given)} tokens: it needs {bounds}")
    with torch.no_grad():
        if given is None:
            tokens, wanted = _draw_text(model, result, inputs, min(LENGTH, most or LENGTH))
        else:
            tokens = given.numpy()
            wanted = model(**inputs, **{result.plan.call.tokens: given[None], "use_cache": False}).logits[0].numpy()
    fixed = result.fixed(timeout)
    got = archive_logits(engine, result.decoder.archive, result.state, tokens[None], fixed, timeout=timeout)
    if got.shape != wanted.shape:
        raise InputError(f"the model in float32 returns {wanted.shape[1]} logits, and the archive {got.shape[1]}")
    return weight_loss(tokens, got, wanted)


def measure_cache(result: GenerativeArchives, bits: int = 8, text: Any = None, *, timeout: float = 60.0) -> CacheLoss:
    """Return what a quantized cache in the engine loses on a text, against the same archive with the cache as it is.

    `text` are token ids `[S]`; by default the model samples up to 128 of them. `timeout` is in seconds for each step.

    Raises:
        InputError: the engine does not quantize this cache, or does not hold it.
        EngineError: the archive did not run.
    """
    engine = result.decoder.target.engine()
    if not isinstance(engine, TractRunner):
        raise InputError(f"{engine.name} has no sessions, so that it cannot generate: tract has")
    if result.plan.encoder is not None or result.plan.call.chosen:
        raise InputError("a quantized cache is measured for a decoder without further inputs")
    if text is None:
        length = min(LENGTH, result.plan.limits.most or LENGTH)
        with torch.no_grad():
            tokens, _ = _draw_text(in_float32(result.model), result, {}, length)
    else:
        tokens = np.asarray(text, np.int64).reshape(-1)
    return cache_loss(engine, result.decoder.archive, result.state, tokens, bits, timeout=timeout)


def in_float32(model: nn.Module) -> nn.Module:
    """Return a model whose weights are float32: itself, or a copy."""
    if all(weight.dtype not in (torch.float16, torch.bfloat16) for weight in model.parameters()):
        return model
    return copy.deepcopy(model).float()


def _widen(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}


def _draw_text(
    model: Any, result: GenerativeArchives, inputs: Mapping[str, torch.Tensor], count: int
) -> tuple[Array, Array]:
    """Return a text sampled from a model, and the logits after each of its tokens."""
    call, random = result.plan.call, torch.Generator().manual_seed(0)
    ids = torch.full((1, 1), _first_token(result))
    cache, tokens, logits = None, list[int](), list[torch.Tensor]()
    for _ in range(count):
        tokens.append(int(ids))
        found = model(**inputs, **{call.tokens: ids, call.cache: cache, "use_cache": True})
        cache = getattr(found, call.cache)
        logits.append(found.logits[0, -1])
        ids = torch.multinomial(logits[-1].softmax(-1), 1, generator=random)[None]
    return np.array(tokens), torch.stack(logits).numpy()


def _first_token(result: GenerativeArchives) -> int:
    """Return the token at the start of a text of this model."""
    names: Sequence[str] = ("decoder_start_token_id", "bos_token_id")
    known = [getattr(getattr(result.model, "generation_config", None), name, None) for name in names]
    return next((token for token in known if isinstance(token, int)), 1)
