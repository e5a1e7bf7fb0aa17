"""The decoder calls that `generate` makes: the arguments of each step, and the cache.

Models are from transformers: the cache is an argument, and a field of the result.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from t2n_core.errors import InputError
from t2n_core.rewriter.builtin import delta_rule
from t2n_core.torch_graph.frontend.pytree.objects import parts_at_any_depth

CACHES: Final = ("cache", "past_key_values", "cache_params")
"""The arguments for caches in transformers: the first from 5.24 on, the others before."""
CHOSEN: Final = "logits_to_keep"
"""The argument of transformers' models for the positions whose logits are computed, as a number or a vector."""
INPUT: Final = "input"
"""The value of `last_logits` that makes the positions an input of the archive."""
MASK: Final = "attention_mask"
"""The argument for padding, which a tokenizer returns beside the tokens; ones hide nothing."""
_PROMPT = 3
"""Tokens in the cache of an example; a window has to be longer."""
_STEP = 2
"""Tokens in the step of an example."""


@dataclass(frozen=True, slots=True)
class DecoderCall:
    """One step of a decoder after a prompt."""

    cache: str
    """The argument that takes the cache."""
    tokens: str
    """The argument that takes the tokens of the step."""
    arguments: Mapping[str, Any]
    takes_many: bool
    """True if several tokens in one step have the same results as one by one."""
    needs: tuple[str, ...] = ()
    """Operators that a target must have to compute several tokens in one step."""

    @property
    def chosen(self) -> bool:
        """Return whether the positions whose logits are computed are an input of the archive."""
        return isinstance(self.arguments.get(CHOSEN), torch.Tensor)


def decoder_call(
    model: torch.nn.Module,
    prompt: Mapping[str, Any],
    *,
    last_logits: bool | int | str,
    one_token: bool = False,
    least: int = 1,
) -> DecoderCall:
    """Return an example of the step after a prompt of `least` tokens or more, with the prompt's cache.

    A step has several tokens if the model supports that and `one_token` is false.

    `prompt` are arguments of the model, with at least 4 token ids more than `least`. `last_logits` is the number of
    last tokens whose logits are computed (False for all of them), or "input" for positions that each call gives. Raises
    InputError for a model without a cache.
    """
    _check_number(last_logits)
    tokens = _token_argument(model, prompt)
    ids = prompt[tokens]
    past = least - 1 + _PROMPT
    if ids.shape[-1] < past + _STEP:
        raise InputError(f"the prompt has {ids.shape[-1]} tokens, an example needs {past + _STEP}")
    fixed = _fixed_arguments(model, prompt, tokens)
    cache = cache_argument(model)
    first = {**fixed, tokens: ids[:, :past], "use_cache": True}
    with torch.no_grad():
        result = model(**copy.deepcopy(first))
        prompt_cache = getattr(result, cache, None)
        if prompt_cache is None:
            raise InputError(f"{type(model).__name__} returns no {cache}", hint="is `use_cache` off in its config?")
        steps = ids[:, past : past + _STEP]
        needs = None if one_token else _needs_of_many(model, fixed, tokens, cache, prompt_cache, steps)
        many = needs is not None
    arguments = {**fixed, tokens: steps if many else steps[:, :1], cache: prompt_cache, "use_cache": True}
    if last_logits and many:
        if CHOSEN not in inspect.signature(model.forward).parameters:
            raise InputError(f"{type(model).__name__} computes the logits of all tokens, not only of the last ones")
        arguments[CHOSEN] = torch.tensor([0, -1]) if last_logits == INPUT else int(last_logits)
    if last_logits == INPUT and not many and not one_token:
        raise no_positions_error(model)
    return DecoderCall(cache, tokens, arguments, many, needs or ())


def hides_nothing(mask: Any) -> bool:
    """Return whether a mask for padding is all ones."""
    return bool(torch.as_tensor(mask).all())


def _fixed_arguments(model: torch.nn.Module, prompt: Mapping[str, Any], tokens: str) -> dict[str, Any]:
    """Return the arguments that are the same in each step: all but the tokens and per-token values.

    A decoder's archive has no per-token values, such as token types. Raises InputError for padding, and for such values
    that change the logits.
    """
    ids, rest = prompt[tokens], {name: value for name, value in prompt.items() if name not in (tokens, MASK)}
    if MASK in prompt and not hides_nothing(prompt[MASK]):
        raise InputError(
            f"the prompt's `{MASK}` hides tokens, and a decoder's archive takes prompts without padding",
            hint="pass a prompt for each length, or prompts of one length",
        )
    of_tokens = {
        name: value for name, value in rest.items() if isinstance(value, torch.Tensor) and value.shape == ids.shape
    }
    fixed = {name: value for name, value in rest.items() if name not in of_tokens}
    for name, value in of_tokens.items():
        if not _same_logits(model, {**fixed, tokens: ids}, {**fixed, tokens: ids, name: value}):
            raise InputError(
                f"the prompt's `{name}` changes the logits, and a decoder's archive takes tokens alone",
                hint="leave it out, if the model is to generate without it",
            )
    return fixed


def _same_logits(model: torch.nn.Module, first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two calls of a model have the same logits."""
    with torch.no_grad():
        logits, others = (model(**copy.deepcopy(dict(call))).logits for call in (first, other))
    return torch.equal(logits, others)


def _check_number(last_logits: bool | int | str) -> None:
    """Raise InputError for a number of logits that means nothing."""
    if last_logits != INPUT and (isinstance(last_logits, str) or last_logits < 0):
        raise InputError(f'last_logits={last_logits!r} is neither a number of tokens nor "{INPUT}"')


def no_positions_error(model: torch.nn.Module) -> InputError:
    """Return the error for positions that are asked of a model with one token a step."""
    return InputError(f"{type(model).__name__} takes one token a step, so that there are no positions to choose")


def _needs_of_many(
    model: torch.nn.Module, fixed: Mapping[str, Any], tokens: str, cache: str, past: Any, steps: torch.Tensor
) -> tuple[str, ...] | None:
    """Return the operators that a target needs for several tokens at once; None if a step has to have one token.

    Two tokens at once must have the same logits as one by one. Recurrent layers of transformers reset their state if
    given more than one token, or split the tokens into chunks, whose number an engine cannot compare; but linear
    attention by the gated delta rule goes on from its state, and some engines have an operator for it.
    """

    def logits(ids: torch.Tensor, past: Any) -> tuple[torch.Tensor, Any]:
        output = model(**{**copy.deepcopy(dict(fixed)), tokens: ids, cache: past, "use_cache": True})
        return output.logits[:, -1], getattr(output, cache)

    after = copy.deepcopy(past)
    for position in range(steps.shape[1]):
        one_by_one, after = logits(steps[:, position : position + 1], after)
    states = _count_states(past, after)
    if states != delta_rule.STATES * delta_rule.count_layers(model):
        return None
    try:
        at_once, _ = logits(steps, copy.deepcopy(past))
    except (RuntimeError, ValueError, IndexError, AssertionError):
        return None
    spread = float(one_by_one.float().std())
    is_same = bool((at_once.float() - one_by_one.float()).abs().max() <= 1e-2 * spread)
    return ((delta_rule.OPERATOR,) if states else ()) if is_same else None


def _count_states(before: Any, after: Any) -> int:
    """Return how many tensors of a cache have other elements after a step, and the same shape."""
    parts_before = dict(parts_at_any_depth(before))
    return sum(
        part.shape == parts_before[path].shape and not torch.equal(part, parts_before[path])
        for path, part in parts_at_any_depth(after)
        if isinstance(part, torch.Tensor) and isinstance(parts_before.get(path), torch.Tensor)
    )


def _token_argument(model: torch.nn.Module, prompt: Mapping[str, Any]) -> str:
    for name in ("decoder_input_ids", "input_ids"):
        value = prompt.get(name)
        if isinstance(value, torch.Tensor) and value.dim() == 2 and not value.is_floating_point():
            return name
    raise InputError(f"the example of {type(model).__name__} has no input_ids of shape [batch, tokens]")


def cache_argument(model: torch.nn.Module) -> str:
    """Return the argument of a model, and the field of its result, that holds the cache. Raises InputError."""
    parameters = inspect.signature(model.forward).parameters
    argument = next((name for name in CACHES if name in parameters), None)
    if argument is None:
        raise InputError(
            f"{type(model).__name__} takes no cache: {' or '.join(CACHES)}",
            hint="export it with ModelExport, and name its state with state=…",
        )
    return argument
