"""Images of any size for Qwen3-VL, whose encoder has learned positions and gives rows to layers of the decoder."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import nn

from t2n_core.errors import InputError
from t2n_core.generative.grid_images import GRID, GridEncoder, GridImages
from t2n_core.program import Statement, items, let, text
from t2n_core.program.statements import Expression

_GRIDS: Final = ("qwen2_vl", "qwen2_5_vl")
_DEEP: Final = "qwen3_vl"


def grid_images(model: Any) -> GridImages:
    """Return the statements for a model's images of any size. Raises InputError for a family without them."""
    family = model.config.model_type
    if family == _DEEP:
        return DeepImages(model)
    if family not in _GRIDS:
        raise InputError(
            f"{type(model).__name__} reads a grid of patches in a way of its own",
            hint=f"images of any size are for {', '.join(_GRIDS)} and {_DEEP}",
        )
    return GridImages(model)


class DeepEncoder(GridEncoder):
    """The image encoder of Qwen3-VL with what follows from the grid as inputs."""

    def forward(  # type: ignore[override]
        self, patches: torch.Tensor, positions: torch.Tensor, extent: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows of an image, and inner blocks' rows as `[blocks, rows, width]`.

        `extent` are the rows and columns of patches of the image; `patches` and `positions` are as in GridEncoder.
        """
        visual, flat = self.visual, positions.flatten(0, 1)
        hidden = visual.patch_embed(patches.flatten(0, 1))
        hidden = hidden + self._learned(flat, extent)
        turn, inner = visual.rotary_pos_emb(hidden, flat), []
        for index, block in enumerate(visual.blocks):
            hidden = self.after_block(block, hidden, turn, None)
            if index in visual.deepstack_visual_indexes:
                merger = visual.deepstack_merger_list[visual.deepstack_visual_indexes.index(index)]
                inner.append(merger(hidden))
        return visual.merger(hidden), torch.stack(inner)

    def _learned(self, positions: torch.Tensor, extent: torch.Tensor) -> torch.Tensor:
        """Return the learned vectors of patches, interpolated between the corners of a square table."""
        side = self.visual.num_grid_per_side
        steps = (extent - 1).clamp(min=1).to(torch.float32)
        at = positions.to(torch.float32) * (side - 1) / steps
        low = at.floor()
        total: Any = 0
        for down in (0, 1):
            for across in (0, 1):
                corner = low + torch.tensor([down, across])
                share = (1 - (at - corner).abs()).clamp(min=0).prod(-1, keepdim=True)
                row, column = corner.to(torch.int64).clamp(0, side - 1).unbind(-1)
                total = total + self.visual.pos_embed(row * side + column) * share
        return total  # type: ignore[no-any-return]


class DeepStep(nn.Module):
    """One step of Qwen3-VL's decoder: after its first layers, vectors of the encoder's inner blocks are added."""

    cache = "past_key_values"

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.text, self.head = copy.copy(model.model.language_model), model.lm_head
        # The model adds rows at the places of a mask; here each token has a vector, zeros where it is no image.
        self.text._deepstack_process = lambda hidden, mask, vectors: hidden + vectors

    def forward(
        self, inputs_embeds: torch.Tensor, cache: Any, position_ids: torch.Tensor, inner: torch.Tensor
    ) -> dict[str, Any]:
        """Return the logits of all vectors, and the cache; `inner` are `[blocks, tokens, width]`."""
        output = self.text(
            inputs_embeds=inputs_embeds,
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
            deepstack_visual_embeds=list(inner[:, None]),
        )
        return {"logits": self.head(output.last_hidden_state), "cache": output.past_key_values}


class DeepImages(GridImages):
    """The statements for Qwen3-VL, which also put the rows of inner blocks at the places of the image."""

    def __init__(self, model: Any) -> None:
        """Take a model. Raises InputError for positions that are interpolated in another way."""
        visual = model.model.visual
        if visual.interpolation_mode != "bilinear" or not visual.interpolation_align_corners:
            raise InputError(f"{type(model).__name__} interpolates positions in another way than Qwen3-VL")
        super().__init__(model, DeepEncoder(visual).eval())
        self._blocks, self._width = len(visual.deepstack_visual_indexes), model.config.text_config.hidden_size

    @property
    def names(self) -> list[str]:
        return [*super().names, "extent"]

    @property
    def axes(self) -> dict[str, dict[int, str]]:
        return {name: axes for name, axes in super().axes.items() if name != "extent"}

    @property
    def outputs(self) -> dict[str, str]:
        return {"rows": "rows", "inner": "inner_rows"}

    def step(self, model: Any) -> nn.Module | None:
        return DeepStep(model)

    def of_decoder(self, tokens: range) -> dict[str, tuple[torch.Tensor, int]]:
        return {**super().of_decoder(tokens), "inner": (torch.randn(self._blocks, len(tokens), self._width), 1)}

    @property
    def layout(self) -> Statement:
        return _also(super().layout, extent=["reshape", ["slice", GRID, 1, 1, 3], items(2)])

    @property
    def of_prompt(self) -> Statement:
        """Return the statement of GridImages, which also sets the vectors of inner blocks for all tokens."""
        empty = ["full", items(["size", "input_ids", 1], self._width), 0, text("float32")]
        inner: Expression = None
        for block in range(self._blocks):
            rows = ["reshape", ["slice", "inner_rows", 0, block, block + 1], items("count", self._width)]
            placed = ["reshape", ["replace", empty, "places", rows], items(1, -1, self._width)]
            inner = placed if inner is None else ["concat", 0, inner, placed]
        return _also(super().of_prompt, inner=inner)

    @property
    def of_step(self) -> Statement:
        return _also(super().of_step, inner=["full", items(self._blocks, 1, self._width), 0, text("float32")])


def _also(statement: Statement, **variables: Expression) -> Statement:
    """Return a statement that sets further variables."""
    of_base: Mapping[str, Expression] = statement["let"]
    return let(**of_base, **variables)
