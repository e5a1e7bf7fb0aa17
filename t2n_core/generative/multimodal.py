"""A model of transformers that reads text and images or sounds, as a program of several archives.

The archives are `embedding` (tokens), `encoder` (images or sounds) and `decoder` (vectors and a cache). The program
puts the encoder's rows at the places of a token in the prompt, and generates greedily.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from t2n_core.errors import InputError
from t2n_core.generative.calls import cache_argument
from t2n_core.generative.deep_images import grid_images
from t2n_core.generative.grid_images import GRID, GridImages
from t2n_core.program import Part, Program, Statement, items, let, run, text, while_
from t2n_core.torch_graph.frontend.pytree.objects import parts_at_any_depth
from t2n_core.torch_graph.frontend.state.names import state_name

_FEATURES: Final = {"get_image_features": "image_token_id", "get_audio_features": "audio_token_id"}
"""The method of a model that encodes an input, and the field of its configuration with the token that stands for it."""
_PROMPT, _STEP = 3, 2
"""Tokens in the cache, and in the step, of the decoder's example."""


class Features(nn.Module):
    """The vectors of images or sounds, one row for each place in the prompt."""

    def __init__(self, model: Any, method: str) -> None:
        super().__init__()
        self.model, self.method = model, method

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Return the rows of all images or sounds, `[rows, width]`."""
        output = getattr(self.model, self.method)(**inputs, return_dict=True)
        rows = output if isinstance(output, torch.Tensor) else output.pooler_output
        rows = torch.cat(list(rows)) if isinstance(rows, list | tuple) else rows
        return rows.flatten(0, -2)


class VectorStep(nn.Module):
    """One step of a decoder that takes vectors instead of tokens."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.cache = model, cache_argument(model)

    def forward(self, inputs_embeds: torch.Tensor, cache: Any, **more: torch.Tensor) -> dict[str, Any]:
        """Return the logits of all vectors, and the cache."""
        output = self.model(inputs_embeds=inputs_embeds, use_cache=True, **{self.cache: cache}, **more)
        return {"logits": output.logits, "cache": getattr(output, self.cache)}


def multimodal_program(
    model: Any, examples: Sequence[Mapping[str, torch.Tensor]], steps: int = 24, *, encoder: nn.Module | None = None
) -> Program:
    """Return the program of a model of transformers that reads a prompt with images or sounds.

    Args:
        model: a model with `generate`, in evaluation mode, such as LLaVA, Idefics3, SmolVLM, Qwen2.5-VL or Voxtral.
        examples: arguments of `generate` by name: `input_ids` `[1, tokens]`, in which a token stands for each row of an
            image or a sound, and the encoder's arguments, such as `pixel_values`.
        steps: tokens to generate.
        encoder: a module that takes the encoder's arguments by name and returns the rows `[rows, width]`, for a model
            whose own method depends on its data, such as Idefics3, which leaves out images of zeros.

    The number of tokens is dynamic; images and sounds have the examples' sizes, except with `image_grid_thw` (Qwen2-VL,
    Qwen2.5-VL, Qwen3-VL): then a prompt has one image of any size.

    Raises InputError for a model that encodes neither images nor sounds, and for one with another kind of grid.
    """
    method, token = _encoder_of(model)
    example = examples[0]
    grid = grid_images(model) if GRID in example else None
    features = {name: value for name, value in example.items() if name != "input_ids"}
    encoding: dict[str, Any] = {"output_names": ["rows"]}
    if grid is not None:
        features, encoder = grid.example(example), encoder or grid.encoder
        encoding = {"output_names": list(grid.outputs), "dynamic_axes": grid.axes}
    embeddings = model.get_input_embeddings()
    step, caches = _decoder(model, embeddings, example["input_ids"], grid)
    parts = {
        "embedding": Part(
            Embedding(embeddings),
            {"tokens": example["input_ids"]},
            {"dynamic_axes": {"tokens": {1: "S"}}, "output_names": ["vectors"]},
        ),
        "encoder": Part(encoder or Features(model, method), features, encoding),
        "decoder": step,
    }
    embed = run("embedding", {"tokens": "step"}, {"vectors": "vectors"})
    initial = {f"in_{name}": _empty(cache, axis) for name, (cache, axis) in caches.items()}
    further = {} if grid is None else {name: name for name in grid.of_decoder(range(1))}
    decode = run(
        "decoder",
        {"inputs_embeds": "vectors", **further, **{f"in_{name}": f"in_{name}" for name in caches}},
        {"outputs": "logits", **{f"out_{name}": f"in_{name}" for name in caches}},
    )
    width = embeddings.weight.shape[-1]
    next_place = [] if grid is None else [grid.of_step]
    choose = let(
        last=["slice", "logits", 1, -1, ["size", "logits", 1]],
        step=["argmax", "last", -1],
        tokens=["concat", 1, "tokens", "step"],
    )
    statements: list[Statement] = [
        *([] if grid is None else [grid.layout]),
        run("encoder", {name: name for name in features}, {"rows": "rows"} if grid is None else grid.outputs),
        *([] if grid is None else [grid.of_prompt]),
        let(step="input_ids", tokens=["slice", "input_ids", 1, 0, 0], **initial),
        embed,
        let(
            places=["reshape", ["equal", "input_ids", token], items(-1)],
            vectors=[
                "reshape",
                ["replace", ["reshape", "vectors", items(-1, width)], "places", "rows"],
                items(1, -1, width),
            ],
        ),
        decode,
        choose,
        while_(["less", ["size", "tokens", 1], steps], *next_place, embed, decode, choose),
    ]

    def reference(**inputs: torch.Tensor) -> torch.Tensor:
        prompt = inputs["input_ids"]
        options = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": steps, "do_sample": False}
        if grid is not None:  # without it the model takes the image's tokens for text
            options["mm_token_type_ids"] = (prompt == token).to(torch.int32)
        output = model.generate(**inputs, **options, eos_token_id=None, pad_token_id=0)
        return output[:, prompt.shape[1] :] if output.shape[1] > steps else output  # type: ignore[no-any-return]

    return Program(parts, statements, ["tokens"], reference, examples)


class Embedding(nn.Module):
    """The vectors of tokens."""

    def __init__(self, embeddings: nn.Module) -> None:
        super().__init__()
        self.embeddings = embeddings

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the vectors `[batch, tokens, width]`."""
        return self.embeddings(tokens)  # type: ignore[no-any-return]


def _encoder_of(model: Any) -> tuple[str, int]:
    for method, field in _FEATURES.items():
        token = getattr(model.config, field, None)
        if hasattr(model, method) and token is not None:
            return method, int(token)
    raise InputError(f"{type(model).__name__} has no {' or '.join(_FEATURES)}, with a token in its configuration")


def _decoder(
    model: Any, embeddings: nn.Module, prompt: torch.Tensor, grid: GridImages | None
) -> tuple[Part, dict[str, tuple[torch.Tensor, int]]]:
    """Return the decoder's archive, and by the names of its caches an example of each with its growing axis."""
    step: Any = (VectorStep(model) if grid is None else grid.step(model) or VectorStep(model)).eval()
    with torch.no_grad():
        vectors = embeddings(prompt[:, : _PROMPT + _STEP])
        first = model(inputs_embeds=vectors[:, :_PROMPT], use_cache=True)
        cache = getattr(first, step.cache)
    arguments, axes = {"inputs_embeds": vectors[:, _PROMPT:], "cache": cache}, {"inputs_embeds": {1: "S"}}
    further = {} if grid is None else grid.of_decoder(range(_PROMPT, _PROMPT + _STEP))
    for name, (tensor, axis) in further.items():
        arguments[name], axes[name] = tensor, {axis: "S"}
    options = {"state": "cache", "dynamic_axes": axes, "output_names": ["outputs"]}
    caches = {
        state_name("cache", path): (part, part.shape.index(_PROMPT, 1))
        for path, part in parts_at_any_depth(cache)
        if isinstance(part, torch.Tensor) and part.dim() > 2  # a window's size is a tensor, too
    }
    return Part(step, arguments, options), caches


def _empty(cache: torch.Tensor, axis: int) -> Any:
    """Return the expression of an empty cache."""
    shape = [0 if index == axis else size for index, size in enumerate(cache.shape)]
    return ["full", items(*shape), 0, text(str(cache.dtype).removeprefix("torch."))]
