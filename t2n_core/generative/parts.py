"""The archives of a generating model: a decoder, and an encoder before it if the model has one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import nn

from t2n_core.errors import InputError
from t2n_core.generative.calls import CHOSEN, MASK, DecoderCall, cache_argument, decoder_call, hides_nothing
from t2n_core.torch_graph.constraints.state_axes import PAST
from t2n_core.torch_graph.frontend.pytree.objects import parts_at_any_depth
from t2n_core.torch_graph.frontend.state.names import state_name

TOKENS: Final = "S"
"""The symbol of the tokens of one step."""
ENCODED: Final = "E"
"""The symbol of the length of the encoded input."""
POSITIONS: Final = "K"
"""The symbol of the positions whose logits are computed, if they are an input."""
LOGITS: Final = "outputs"
"""The name of the logits, as in the test archives of tract's own runner."""
SCENARIOS: Final = {"tg": f"{TOKENS} == 1", "pp": f"{PAST} == 0", "any": f"{TOKENS} >= 1"}
"""The scenarios of an archive by the names of tract's archives: text generation, prompt processing. In the third one a
prompt goes on: without it, the engine would refuse a prompt in parts."""
_LIMITS = ("max_target_positions", "max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True)
class Part:
    """One archive: a module, an example call, and the options of its export."""

    module: nn.Module
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The lengths of sequences, past and current step together, for which a decoder is valid."""

    least: int = 1
    most: int | None = None
    """None for a model without limit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The archives of a model."""

    decoder: Part
    call: DecoderCall
    encoder: Part | None = None
    limits: TokenLimits = TokenLimits()


def plan_of(
    model: nn.Module,
    example: Any,
    *,
    batch: str | None = None,
    last_logits: bool | int | str = False,
    one_token: bool = False,
    scenarios: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, Any]] | None = None,
    positions: int | None = None,
) -> Plan:
    """Return the archives to export for a model of transformers.

    `example` is a prompt: token ids [batch, tokens], or the arguments of `generate` by name; without one the tokens are
    random. With `one_token` a step has one token, even if the model supports more. `batch` is the symbol of a dynamic
    number of sequences. With `scenarios` the archive names tract's scenarios. `dynamic_axes` are for an encoder's
    inputs. `positions` is the maximum sequence length in tokens; see `token_limits`. Raises InputError.
    """
    limits = token_limits(model, positions)
    arguments = _arguments(model, example, limits)
    steps: dict[str, Any] = {"last_logits": last_logits, "one_token": one_token}
    plan = _plan_of(model, arguments, batch, dynamic_axes or {}, steps, limits)
    if not scenarios or not plan.call.takes_many:
        return plan
    lines = tuple(f"tract_assert {name}: {condition}" for name, condition in SCENARIOS.items())
    return replace(plan, decoder=replace(plan.decoder, extensions=(*plan.decoder.extensions, *lines)))


def _plan_of(
    model: nn.Module,
    arguments: dict[str, Any],
    batch: str | None,
    dynamic_axes: Mapping[str, Mapping[int, Any]],
    steps: Mapping[str, Any],
    limits: TokenLimits,
) -> Plan:
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return _with_encoder(model, arguments, batch, dynamic_axes, steps, limits)
    if dynamic_axes:
        raise InputError("dynamic_axes are those of an encoder, and this model has none", hint="batch= names the batch")
    call = decoder_call(model, arguments, least=limits.least, **steps)
    return Plan(_decoder(model, call, batch, {}, limits), call, limits=limits)


def _arguments(model: nn.Module, example: Any, limits: TokenLimits) -> dict[str, Any]:
    if example is None:
        config = getattr(model, "config", None)
        if config is None:
            raise InputError(f"{type(model).__name__} has no config to draw an example from: give token ids")
        text_config = config.get_text_config()
        drawn = torch.Generator().manual_seed(0)
        return {"input_ids": torch.randint(1, text_config.vocab_size, (1, limits.least + 7), generator=drawn)}
    if isinstance(example, torch.Tensor):
        return {"input_ids": example}
    if not isinstance(example, Mapping):
        raise InputError(f"the example is a {type(example).__name__}: give token ids, or arguments by name")
    return dict(example)


def _decoder(
    model: nn.Module,
    call: DecoderCall,
    batch: str | None,
    encoded_axes: Mapping[str, Mapping[int, str]],
    limits: TokenLimits,
) -> Part:
    tokens: dict[int, Any] = {} if batch is None else {0: batch}
    if call.takes_many:
        tokens[1] = TOKENS
    axes: dict[str, Mapping[int, Any]] = {call.tokens: tokens} if tokens else {}
    if batch is not None:
        axes[call.cache] = {0: batch}
    if call.chosen:
        axes[CHOSEN] = {0: POSITIONS}
    for name, sizes in encoded_axes.items():
        axes[name] = {**sizes, **({} if batch is None else {0: batch})}
    options = {"state": call.cache, "dynamic_axes": axes, "output_names": [LOGITS]}
    grows = any(tensor.dim() > 2 for tensor in _cache_tensors(call).values())
    total = f"P + {TOKENS if call.takes_many else 1}"
    assertions = [f"tract_assert {total} <= {limits.most}"] if limits.most and grows else []
    if limits.least > 1:
        assertions.append(f"tract_assert {total} >= {limits.least}")
    return Part(model, call.arguments, options, tuple(assertions))


def token_limits(model: nn.Module, positions: int | None = None) -> TokenLimits:
    """Return the sequence lengths for which a decoder is valid: up to `positions`, by default the model's maximum.

    A decoder with LongRoPE is valid on one side of the switch between its factors: up to the positions of the short
    ones, by default, or for sequences that are longer from the first call on. At the switch, transformers computes the
    whole cache again, which no decoder with a cache does. Raises InputError for more positions than the model has.
    """
    config = _text_config(model)
    numbers = (getattr(config, name, None) for name in _LIMITS)
    maximum = next((number for number in numbers if isinstance(number, int) and number > 0), None)
    if positions is not None and not 1 <= positions <= (maximum or positions):
        raise InputError(f"positions={positions}: this model has {maximum or 'one or more'}")
    short = short_positions(model)
    if short is not None and positions is not None and positions > short:
        return TokenLimits(short + 1, positions)
    return TokenLimits(1, positions or short or maximum)


def short_positions(model: nn.Module) -> int | None:
    """Return the number of positions with the short factors of LongRoPE; None for a model with other positions."""
    parameters = getattr(_text_config(model), "rope_parameters", None)
    kinds = [parameters, *parameters.values()] if isinstance(parameters, Mapping) else []
    of_long = [kind for kind in kinds if isinstance(kind, Mapping) and kind.get("rope_type") == "longrope"]
    return min((kind["original_max_position_embeddings"] for kind in of_long), default=None)


def _text_config(model: nn.Module) -> Any:
    config = getattr(model, "config", None)
    return config if config is None else config.get_text_config(decoder=True)


def _cache_tensors(call: DecoderCall) -> dict[str, torch.Tensor]:
    """Return the tensors of the cache by the names of their inputs."""
    return {
        f"in_{state_name(call.cache, path)}": part
        for path, part in parts_at_any_depth(call.arguments[call.cache])
        if isinstance(part, torch.Tensor)
    }


# ----------------------------------------------------------------------------------------------- encoders and decoders
class CrossAttention(nn.Module):
    """Computes the keys and values of the encoded input for each layer of the decoder."""

    def __init__(self, model: Any, start: int) -> None:
        super().__init__()
        self.model, self.start, self.cache = model, start, cache_argument(model)

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return them by the names of the decoder's inputs."""
        encoded = self.model.get_encoder()(**inputs)
        first = next(iter(inputs.values()))
        tokens = torch.full((first.shape[0], 1), self.start)
        cache = getattr(self.model(decoder_input_ids=tokens, encoder_outputs=encoded, use_cache=True), self.cache)
        return {
            f"in_{state_name(self.cache, ('cross_attention_cache', *path))}": part
            for path, part in parts_at_any_depth(cache.cross_attention_cache)
            if isinstance(part, torch.Tensor)
        }


class DecoderStep(nn.Module):
    """One step of a decoder whose cache holds the keys and values of the encoded input."""

    def __init__(self, model: Any, encoded: Any) -> None:
        """Take a model, and an example of its encoder's result."""
        super().__init__()
        self.model, self.kind, self.cache = model, type(encoded), cache_argument(model)
        self.width = encoded.last_hidden_state.shape[-1]

    def forward(self, decoder_input_ids: torch.Tensor, cache: Any) -> dict[str, Any]:
        """Return the logits and the cache. The model reads only the size of the encoded input, not its elements."""
        keys = cache.cross_attention_cache.layers[0].keys
        encoded = keys.new_zeros(keys.shape[0], keys.shape[2], self.width)
        outputs = self.model(
            decoder_input_ids=decoder_input_ids,
            encoder_outputs=self.kind(last_hidden_state=encoded),
            use_cache=True,
            **{self.cache: cache},
        )
        return {"logits": outputs.logits, "cache": getattr(outputs, self.cache)}


def _with_encoder(
    model: Any,
    inputs: dict[str, Any],
    batch: str | None,
    dynamic_axes: Mapping[str, Mapping[int, Any]],
    steps: Mapping[str, Any],
    limits: TokenLimits,
) -> Plan:
    tokens = inputs.pop("decoder_input_ids", None)
    if len(inputs) > 1 and MASK in inputs and hides_nothing(inputs[MASK]):
        del inputs[MASK]
    accepted = inspect.signature(model.get_encoder().forward).parameters
    unknown = [name for name in inputs if name not in accepted]
    if unknown or not inputs:
        detail = f"no {', '.join(unknown)}" if unknown else f"{model.main_input_name}, which the example lacks"
        raise InputError(f"the encoder of {type(model).__name__} takes {detail}")
    start = model.generation_config.decoder_start_token_id or model.config.decoder_start_token_id or 0
    if tokens is None:
        drawn = torch.Generator().manual_seed(0)
        vocabulary = model.config.get_text_config(decoder=True).vocab_size
        rows = next(iter(inputs.values())).shape[0]
        tokens = torch.randint(1, vocabulary, (rows, 8), generator=drawn)
    encoder = CrossAttention(model, int(start)).eval()
    with torch.no_grad():
        encoded = model.get_encoder()(**inputs)
        if MASK in inputs:
            expected_logits = model(**inputs, decoder_input_ids=tokens).logits
            if not torch.equal(expected_logits, model(encoder_outputs=encoded, decoder_input_ids=tokens).logits):
                raise InputError(
                    f"the example's `{MASK}` hides parts of the encoded input, and a decoder's archive reads all of it",
                    hint="pass an example without padding",
                )
    call = decoder_call(model, {"decoder_input_ids": tokens, "encoder_outputs": encoded}, **steps)
    axes = {name: {**sizes, **({} if batch is None else {0: batch})} for name, sizes in dynamic_axes.items()}
    if batch is not None:
        axes = {**{name: {0: batch} for name in inputs}, **axes}
    encoded_axes = _kept_axes(encoder, inputs, dynamic_axes)
    arguments = {call.tokens: call.arguments[call.tokens], "cache": call.arguments[call.cache]}
    step = replace(call, cache="cache", arguments=arguments)
    decoder = replace(_decoder(model, step, batch, encoded_axes, limits), module=DecoderStep(model, encoded).eval())
    return Plan(decoder, call, Part(encoder, inputs, {"dynamic_axes": axes or None}), limits)


def _kept_axes(
    encoder: nn.Module, inputs: Mapping[str, torch.Tensor], dynamic_axes: Mapping[str, Mapping[int, Any]]
) -> dict[str, dict[int, str]]:
    """Return the axes of an encoder's results that depend on the sizes of its inputs, found by running it longer."""
    if not dynamic_axes:
        return {}
    longer = dict(inputs)
    for name, sizes in dynamic_axes.items():
        for axis in sizes:
            longer[name] = torch.cat([longer[name], longer[name]], dim=axis)
    with torch.no_grad():
        before, after = encoder(**inputs), encoder(**longer)
    return {
        name: {axis: ENCODED for axis, size in enumerate(before[name].shape) if size != after[name].shape[axis]}
        for name in before
    }
