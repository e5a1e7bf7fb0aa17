"""Sampling at the coordinates of a grid. For engines before 0.23.3, PyTorch's decomposition into gathers is used."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op.registry import op

MODES = ("bilinear", "nearest", "bicubic")
BORDERS = ("zeros", "border", "reflection")
REACH = 3
"""Elements on either side of a coordinate that cubic interpolation may read, and one more."""


@op("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d", target="tract", since="0.23.3")
def grid_sampler(
    g: Emitter, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Use the engine's operator, which computes in float32 and, like PyTorch, lists the coordinates last axis first."""
    image = g.cast(input, FLOAT32)
    places = g.cast(grid, FLOAT32)
    if MODES[interpolation_mode] == "bicubic" and BORDERS[padding_mode] == "border":
        image, places = _wider(g, image, places, align_corners)
    sampled = g.tract_core_grid_sample(
        image,
        places,
        mode=MODES[interpolation_mode],
        padding_mode=BORDERS[padding_mode],
        align_corners=align_corners,
        out=Expected(g.output.shape, FLOAT32),
    )
    return g.cast(sampled, input.dtype)


def _wider(g: Emitter, image: Value, grid: Value, align_corners: bool) -> tuple[Value, Value]:
    """Return the image with its edges repeated as far as four neighbours reach, and the grid in its coordinates.

    The engine clamps a coordinate to the border before it picks neighbours; PyTorch clamps each neighbour.
    """
    extents = image.shape[2:]
    if not all(isinstance(extent, int) for extent in extents):
        raise g.fail("bicubic sampling with border padding over a dynamic size cannot be expressed in NNEF")
    last = [int(extent) - align_corners for extent in reversed(extents)]
    shrink = np.array([n / (n + 2 * REACH) for n in last], dtype=np.float32)
    factors = g.lift(g.constant(shrink), grid.rank)
    padding = [0, 0, *(REACH for _ in extents)]
    image = g.pad(image, padding=[(p, p) for p in padding], border="replicated")
    return image, g.mul(grid, factors)
