"""Images of any size for the Qwen-VL models: what follows from an image's grid is computed by the program.

The models read patches in rows of merged ones, and a grid `image_grid_thw` of their numbers. Of it follow the patches'
positions, the windows of attention, and the three positions of each token in the decoder. Here they are statements for
numpy, so that the encoder's archive takes them as inputs, and holds for any number of patches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import nn

from t2n_core.errors import InputError
from t2n_core.program import Statement, items, let, text
from t2n_core.program.driver import execute
from t2n_core.program.statements import Expression

GRID: Final = "image_grid_thw"
"""The argument of a model with the frames, rows and columns of patches of each image."""
POSITIONS: Final = "position_ids"
"""The input of the decoder with the positions of tokens in time, height and width, `[3, 1, tokens]`."""
_PIXELS: Final = "pixel_values"
_ARGUMENTS: Final = {"input_ids", _PIXELS, GRID}


class GridEncoder(nn.Module):
    """The image encoder of Qwen2-VL and Qwen2.5-VL with what follows from the grid as inputs."""

    def __init__(self, visual: Any) -> None:
        super().__init__()
        self.visual = visual
        self.everywhere = frozenset(getattr(visual, "fullatt_block_indexes", range(len(visual.blocks))))
        """The blocks whose attention sees the whole image; the others attend within windows."""

    def forward(
        self, patches: torch.Tensor, positions: torch.Tensor, windows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the rows of an image, `[rows, width]`.

        `patches` are `[rows, patches of a row, values]`, `positions` their rows and columns in the image, and `windows`
        a number for each row, which is the same for rows of one window. Attention in windows is the same in any order
        of the patches: a mask takes the place of the model's reordering.
        """
        visual, unit = self.visual, patches.shape[1]
        hidden = visual.patch_embed(patches.flatten(0, 1))
        turn = visual.rotary_pos_emb(hidden, positions.flatten(0, 1))
        within: torch.Tensor | None = None
        if windows is not None:
            of_patch = windows[:, None].expand(-1, unit).flatten()
            within = of_patch[:, None] == of_patch[None, :]
        for index, block in enumerate(visual.blocks):
            mask = None if index in self.everywhere else within
            hidden = self.after_block(block, hidden, turn, mask)
        return visual.merger(hidden)  # type: ignore[no-any-return]

    def after_block(
        self, block: Any, hidden: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the vectors of patches after a block; `turn` are cosines and sines of their positions."""
        hidden = hidden + _attend(block.attn, block.norm1(hidden), turn, mask)
        return hidden + block.mlp(block.norm2(hidden))  # type: ignore[no-any-return]


def _attend(
    attention: Any, hidden: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], mask: torch.Tensor | None
) -> torch.Tensor:
    """Return the attention of all patches to each other, as far as the mask allows."""
    states = attention.qkv(hidden).unflatten(-1, (3, attention.num_heads, -1)).permute(1, 2, 0, 3)
    query, key = (_turned(tensor, *turn) for tensor in (states[0], states[1]))
    attention_output = nn.functional.scaled_dot_product_attention(
        query[None], key[None], states[2][None], mask, scale=attention.scaling
    )
    return attention.proj(attention_output[0].transpose(0, 1).flatten(1))  # type: ignore[no-any-return]


def _turned(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = states.chunk(2, -1)
    return states * cos + torch.cat([-second, first], -1) * sin


class GridImages:
    """The statements of a program for images of any size, and the encoder's example inputs."""

    def __init__(self, model: Any, encoder: nn.Module | None = None) -> None:
        """Take a model of transformers, of a family whose encoder this is."""
        vision, blocks = model.config.vision_config, model.model.visual.blocks
        self.encoder = encoder or GridEncoder(model.model.visual).eval()
        self.token = int(model.config.image_token_id)
        self._merge, self._values = int(vision.spatial_merge_size), _values_of(vision)
        everywhere = getattr(vision, "fullatt_block_indexes", range(len(blocks)))
        side = int(getattr(vision, "window_size", 0)) // self._merge // int(vision.patch_size)
        self._window = side if len(everywhere) < len(blocks) else 0
        """Rows along a side of a window; 0 if no block has windows."""

    def step(self, model: Any) -> nn.Module | None:
        """Return the module of a step of the decoder, if it differs from the one for all models."""
        return None

    @property
    def outputs(self) -> dict[str, str]:
        """Return the variables of the program by the names of the encoder's outputs."""
        return {"rows": "rows"}

    def of_decoder(self, tokens: range) -> dict[str, tuple[torch.Tensor, int]]:
        """Return further inputs of the decoder for a step of tokens, each with the axis of the tokens."""
        return {POSITIONS: (torch.tensor(tokens).expand(3, 1, -1), 2)}

    @property
    def names(self) -> list[str]:
        """Return the names of the encoder's inputs, which are variables of the program."""
        return ["patches", "positions", *(["windows"] if self._window else [])]

    def example(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the encoder's inputs for an example. Raises InputError for other arguments than an image's."""
        if set(tensors) != _ARGUMENTS:
            raise InputError(
                f"an example has {', '.join(sorted(tensors))}",
                hint=f"a prompt with an image has {', '.join(sorted(_ARGUMENTS))}",
            )
        values: dict[str, Any] = {name: tensor.numpy() for name, tensor in tensors.items()}
        try:
            execute([self.layout], values, lambda name, inputs: {})
        except ValueError as wrong:
            raise InputError(
                f"the patches do not fit the grid: {wrong}", hint="an example has one image of one frame"
            ) from wrong
        return {name: torch.from_numpy(values[name]) for name in self.names}

    @property
    def axes(self) -> dict[str, dict[int, str]]:
        """Return the dynamic axes of the encoder: the number of rows."""
        return {name: {0: "R"} for name in self.names}

    @property
    def layout(self) -> Statement:
        """Return the statement that sets the encoder's inputs. It fails unless there is one image of one frame."""
        merge, unit = self._merge, self._merge**2
        windows: dict[str, Expression] = {}
        if self._window:
            side = self._window
            per_line = ["add", ["floor_div", "across", side], 1]
            line = ["floor_div", ["floor_div", "row", "across"], side]
            column = ["floor_div", ["mod", "row", "across"], side]
            windows = {"windows": ["add", ["mul", line, per_line], column]}
        return let(
            down=["floor_div", _number(["slice", GRID, 1, 1, 2]), merge],
            across=["floor_div", _number(["slice", GRID, 1, 2, 3]), merge],
            count=["mul", "down", "across"],
            patches=["reshape", _PIXELS, items("count", unit, self._values)],
            row=["range", "count"],
            patch=["range", ["mul", "count", unit]],
            block=["floor_div", "patch", unit],
            high=[
                "add",
                ["mul", ["floor_div", "block", "across"], merge],
                ["mod", ["floor_div", "patch", merge], merge],
            ],
            wide=["add", ["mul", ["mod", "block", "across"], merge], ["mod", "patch", merge]],
            positions=[
                "reshape",
                ["concat", 1, ["reshape", "high", items(-1, 1)], ["reshape", "wide", items(-1, 1)]],
                items("count", unit, 2),
            ],
            **windows,
        )

    @property
    def of_prompt(self) -> Statement:
        """Return the statement that sets the positions of the prompt, and of the token after it.

        It follows `layout`, and fails unless the image's tokens are one run in the prompt.
        """
        run = ["and", "places", ["less", ["sub", "index", "first"], "count"]]

        def along(of_rows: Expression) -> Expression:
            return ["replace", "plain", "run", ["add", "first", of_rows]]

        return let(
            index=["range", ["size", "input_ids", 1]],
            places=["reshape", ["equal", "input_ids", self.token], items(-1)],
            first=["argmax", "places", 0],
            run=run,
            # The tokens of an image count as many places as its longer side has rows.
            shift=["sub", ["max", "down", "across"], "count"],
            plain=["where", ["less", "index", ["add", "first", "count"]], "index", ["add", "index", "shift"]],
            position_ids=[
                "reshape",
                [
                    "concat",
                    0,
                    ["concat", 0, along(["mul", "row", 0]), along(["floor_div", "row", "across"])],
                    along(["mod", "row", "across"]),
                ],
                items(3, 1, -1),
            ],
            place=["add", ["size", "input_ids", 1], "shift"],
        )

    @property
    def of_step(self) -> Statement:
        """Return the statement that sets the positions of the next token."""
        return let(position_ids=["full", items(3, 1, 1), "place", text("int64")], place=["add", "place", 1])


def _number(array: Expression) -> Expression:
    return ["reshape", array, items()]


def _values_of(vision: Any) -> int:
    """Return the number of values of a patch."""
    return int(vision.in_channels) * int(vision.temporal_patch_size) * int(vision.patch_size) ** 2
