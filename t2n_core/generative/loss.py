"""Measure the loss from weight compression against the model in float32."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.generative.archives import GenerativeArchives
from t2n_core.generative.parts import TokenLimits
from t2n_core.parity.generation.cache_loss import CacheLoss, cache_loss
from t2n_core.parity.generation.loss import WeightLoss, archive_logits, weight_loss, windows_of

LENGTH: Final = 128
"""Most tokens of a generated text."""


def measure_loss(
    result: GenerativeArchives, original: nn.Module | None = None, text: Any = None, *, timeout: float = 60.0
) -> WeightLoss:
    """Return the loss from the weights of an archive, on a text.

    The archive runs in its target's engine. `original` is the model in float32, with the weights before compression;
    by default the exported model, converted to float32. `text` are token ids `[S]`, in windows of as many as the model
    takes; by default the model in float32 samples up to 128 of them from its own distribution. `timeout` is in seconds
    for each step.

    Raises:
        InputError: a text of fewer than two tokens, a model with another vocabulary, or a target without generation.
        EngineError: the archive did not run.
    """
    engine = _engine(result)
    model = in_float32(result.model if original is None else original)
    inputs = {} if result.plan.encoder is None else _widen(result.plan.encoder.arguments)
    expected: Iterable[Array]
    if text is None:
        tokens, logits = _draw_text(model, result, inputs)
        windows, expected = [tokens], [logits]
    else:
        windows = text_windows(result.plan.limits, text)
        expected = (_logits(model, result, inputs, window) for window in windows)
    fixed = result.fixed(timeout)
    with closing(archive_logits(engine, result.decoder.archive, result.state, windows, fixed, timeout=timeout)) as got:
        return weight_loss(_with_one_vocabulary(zip(windows, got, expected, strict=True)))


def _with_one_vocabulary(windows: Iterable[tuple[Array, Array, Array]]) -> Iterator[tuple[Array, Array, Array]]:
    """Yield windows with logits of the archive and of the model. Raises InputError if they have unequal shapes."""
    for window, got, expected in windows:
        if got.shape != expected.shape:
            raise InputError(f"the model in float32 returns {expected.shape[1]} logits, and the archive {got.shape[1]}")
        yield window, got, expected


def measure_cache(result: GenerativeArchives, bits: int = 8, text: Any = None, *, timeout: float = 60.0) -> CacheLoss:
    """Return what a quantized cache in the engine loses on a text, against the same archive with the cache as it is.

    `text` are token ids `[S]`, in windows of as many as the model takes; by default the model samples up to 128 of
    them. `timeout` is in seconds for each step.

    Raises:
        InputError: the engine does not quantize this cache, or does not hold it.
        EngineError: the archive did not run.
    """
    engine = _engine(result)
    if result.plan.encoder is not None or result.plan.call.chosen:
        raise InputError("a quantized cache is measured for a decoder without further inputs")
    if text is None:
        windows = [_draw_text(in_float32(result.model), result, {})[0]]
    else:
        windows = text_windows(result.plan.limits, text)
    return cache_loss(engine, result.decoder.archive, result.state, windows, bits, timeout=timeout)


def text_windows(limits: TokenLimits, text: Any) -> list[Array]:
    """Return the windows of token ids `[S]` for a decoder. Raises InputError for fewer than it takes, or than two."""
    return windows_of(torch.as_tensor(text, dtype=torch.int64).reshape(-1).numpy(), limits.most, limits.least)


def _engine(result: GenerativeArchives) -> TractRunner:
    """Return the engine of an archive. Raises InputError if it cannot generate."""
    engine = result.decoder.target.engine()
    if not isinstance(engine, TractRunner):
        raise InputError(f"{engine.name} has no sessions, so that it cannot generate: tract has")
    return engine


def in_float32(model: nn.Module) -> nn.Module:
    """Return a model whose weights are float32: itself, or a copy."""
    if all(weight.dtype not in (torch.float16, torch.bfloat16) for weight in model.parameters()):
        return model
    return copy.deepcopy(model).float()


def _widen(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}


@torch.no_grad()
def _logits(model: Any, result: GenerativeArchives, inputs: Mapping[str, torch.Tensor], window: Array) -> Array:
    """Return the logits of a model after each token of a window."""
    ids = torch.from_numpy(window)[None]
    logits: Array = model(**inputs, **{result.plan.call.tokens: ids, "use_cache": False}).logits[0].numpy()
    return logits


@torch.no_grad()
def _draw_text(model: Any, result: GenerativeArchives, inputs: Mapping[str, torch.Tensor]) -> tuple[Array, Array]:
    """Return a text sampled from a model, and the logits after each of its tokens.

    Raises InputError for a decoder that does not hold for the first tokens of a text.
    """
    if (least := result.plan.limits.least) > 1:
        raise InputError(f"the loss needs a text: this decoder takes {least} tokens or more", hint="give text")
    call, random = result.plan.call, torch.Generator().manual_seed(0)
    ids = torch.full((1, 1), _first_token(result))
    cache, tokens, logits = None, list[int](), list[torch.Tensor]()
    for _ in range(min(LENGTH, result.plan.limits.most or LENGTH)):
        tokens.append(int(ids))
        output = model(**inputs, **{call.tokens: ids, call.cache: cache, "use_cache": True})
        cache = getattr(output, call.cache)
        logits.append(output.logits[0, -1])
        ids = torch.multinomial(logits[-1].softmax(-1), 1, generator=random)[None]
    return np.array(tokens), torch.stack(logits).numpy()


def _first_token(result: GenerativeArchives) -> int:
    """Return the token at the start of a text of this model."""
    names: Sequence[str] = ("decoder_start_token_id", "bos_token_id")
    candidates = [getattr(getattr(result.model, "generation_config", None), name, None) for name in names]
    return next((token for token in candidates if isinstance(token, int)), 1)
