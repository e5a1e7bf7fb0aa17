"""The tokens that a model generates in PyTorch: by its own `generate`, or by its steps if it has none."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from t2n_core.check.generation.continuation import Continuation
from t2n_core.errors import InputError
from t2n_core.rewriter.context import without_rewrites
from t2n_core.torch_graph.ways_in.bfloat16 import without_bfloat16

LENGTHS = (7, 7, 4)
"""Tokens of the prompts that are drawn: two go in one batch, one is of another length."""
_TRIES = 12
"""Prompts that are drawn at most until two tokens of all continuations differ."""
_NEAR = 96
"""A window up to this size is filled by prompts that are drawn."""

Generate = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
Prompts = int | Sequence[Any] | torch.Tensor | None


def continuations_of(
    model: nn.Module,
    prompts: Prompts = None,
    steps: int = 32,
    *,
    initial: Sequence[torch.Tensor] = (),
    fixed: Mapping[str, torch.Tensor] | None = None,
    vocabulary: int | None = None,
) -> tuple[list[Continuation], list[str]]:
    """Return the greedy continuations of prompts, and notes on what they do not reach. The model is not changed.

    `prompts` is a number of random ones, tensors of tokens `[S]` or `[B, S]`, or lists of tokens. A model with a
    `generate` of transformers is asked by it, without any processing of logits and without an end of text. Another one
    is called as `model(tokens, *fixed, *state)`, gives `(logits, *state)`, and begins with `initial`. A model in
    bfloat16 is asked as a copy in float32, as it is exported.

    Raises:
        InputError: a prompt is empty or too long, or the model's `generate` is not greedy.
    """
    if steps < 1:
        raise InputError(f"steps={steps}: a generation has one step or more")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the export has said it
        model, (initial, fixed) = without_bfloat16(model, [list(initial), dict(fixed or {})])
    generate = _by_generate(model, steps) if hasattr(model, "generate") else _by_steps(model, steps, initial, fixed)
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in fixed.items()}
    config = getattr(model, "config", None)
    window, most = _number(config, "sliding_window"), _number(config, "max_position_embeddings")
    found: list[Continuation] = []
    with torch.no_grad(), without_rewrites():
        known = vocabulary or _vocabulary_of(model, [*fixed.values(), *initial])
        for prompt in _prompts(prompts, steps, window, known, found):
            if not prompt.shape[1]:
                raise InputError("a prompt has one token or more")
            if most is not None and prompt.shape[1] + steps > most:
                raise InputError(
                    f"a prompt of {prompt.shape[1]} tokens and {steps} steps: the model takes {most} tokens"
                )
            tokens, logits = generate(prompt)
            found.append(
                Continuation(prompt.cpu().numpy(), tokens.cpu().numpy(), logits.detach().cpu().numpy(), arrays)
            )
    reached = max((one.prompt.shape[1] + one.steps for one in found), default=0)
    notes = []
    if window is not None and reached <= window:
        notes.append(f"no prompt with its {steps} steps passes the sliding window of {window} tokens")
    return found, notes


def _prompts(
    given: Prompts, steps: int, window: int | None, vocabulary: int, found: list[Continuation]
) -> Iterator[torch.Tensor]:
    """Yield prompts `[1, S]`. Those that are drawn go on until two tokens in `found` differ."""
    if given is not None and not isinstance(given, int):
        for one in [given] if isinstance(given, torch.Tensor) else given:
            rows = torch.as_tensor(one, dtype=torch.int64)
            yield from torch.split(rows if rows.ndim == 2 else rows.reshape(1, -1), 1)
        return
    count = len(LENGTHS) if given is None else given
    if count < 1:
        raise InputError(f"prompts={given}: give one prompt or more")
    generator = torch.Generator().manual_seed(0)
    longer = max(window + 2 - steps - max(LENGTHS), 0) if window is not None and window <= _NEAR else 0
    for number in range(max(count, _TRIES)):
        if number >= count and len({int(token) for one in found for token in one.tokens}) > 1:
            return
        size = LENGTHS[number % len(LENGTHS)] + longer
        yield torch.randint(0, vocabulary, (1, size), generator=generator)


def _by_generate(model: Any, steps: int) -> Generate:
    """Return the model's own `generate`, greedy, of exactly so many tokens."""
    own = model.generation_config
    kept = {name: getattr(own, name, None) for name in ("bos_token_id", "decoder_start_token_id")}
    twin = copy.copy(model)  # its parts are the model's own
    twin.generation_config = type(own)(do_sample=False, num_beams=1, use_cache=True, pad_token_id=0, **kept)

    def generate(prompt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        answer = twin.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=steps,
            output_logits=True,
            return_dict_in_generate=True,
        )
        tokens = answer.sequences[0, prompt.shape[1] :]
        logits = torch.cat(answer.logits)
        if len(tokens) != steps or not torch.equal(logits.argmax(-1), tokens):
            raise InputError(f"`generate` of {type(model).__name__} does not take the token of the largest logit")
        return tokens, logits

    return generate


def _by_steps(
    model: nn.Module, steps: int, initial: Sequence[torch.Tensor], fixed: Mapping[str, torch.Tensor]
) -> Generate:
    def generate(prompt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state, tokens, logits = [tensor.clone() for tensor in initial], [], []
        ids = prompt
        for _ in range(steps):
            answer, *state = model(ids, *fixed.values(), *state)
            logits.append((answer if answer.ndim == 2 else answer[:, -1])[0])
            tokens.append(logits[-1].argmax())
            ids = tokens[-1].reshape(1, 1)
        return torch.stack(tokens), torch.stack(logits)

    return generate


def _number(config: Any, name: str) -> int | None:
    """Return a number of a model's configuration, or of its part for text; None if it has none."""
    for part in (config, getattr(config, "text_config", None)):
        value = getattr(part, name, None)
        if (
            isinstance(value, int)
            and value > 0
            and (name != "sliding_window" or getattr(part, "use_sliding_window", True))
        ):
            return value
    return None


def _vocabulary_of(model: nn.Module, others: Sequence[torch.Tensor]) -> int:
    """Return the number of tokens that a model knows: what it says, or the size of its logits."""
    known = _number(getattr(model, "config", None), "vocab_size")
    return known or int(model(torch.zeros(1, 1, dtype=torch.int64), *others)[0].shape[-1])


__all__ = ["LENGTHS", "continuations_of"]
