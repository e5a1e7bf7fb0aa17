"""Cases of operators that interpolate."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.dialect.cases.draw import Draw, arguments
from t2n_core.dialect.cases.recipes import recipe

_COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
)
_INTERPOLATORS = ("nearest", "linear", "cubic")


def _scales(draw: Draw, shape: list[int]) -> Any:
    """Return scales with which every result has at least one element."""
    factors = [1.0, 1.0, *(draw.pick([2.0, 1.5, 0.5, 3.0, 1.3, 0.6, 1.0]) for _ in shape[2:])]
    return np.asarray(
        [max(factor, 1.0 / extent) for factor, extent in zip(factors, shape, strict=True)], dtype=np.float32
    )


@recipe("tract_core_resize", constant=("scales", "sizes"))
def _resize(draw: Draw) -> dict[str, Any]:
    shape = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(draw.integer(1, 2), 2, 7)]
    sized = draw.number % 3 == 2
    sizes = np.asarray([*shape[:2], *(draw.pick([1, draw.integer(1, 9)]) for _ in shape[2:])], dtype=np.int64)
    return arguments(
        input=draw.floats(shape),
        scales=None if sized else _scales(draw, shape),
        sizes=sizes if sized else None,
        coord_transformer=draw.turn([None, *_COORDINATES]),
        interpolator="cubic" if sized else draw.pick([None, *_INTERPOLATORS]),
        nearest_mode=draw.pick([None, "floor", "round_prefer_ceil"]),
    )


@recipe("tract_onnx_resize", constant=("scales", "roi"))
def _onnx_resize(draw: Draw) -> dict[str, Any]:
    shape = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(draw.integer(1, 2), 2, 7)]
    interpolator = draw.turn(["nearest", "linear", "cubic", "linear", "cubic"])
    smooth = interpolator != "nearest"
    return arguments(
        input=draw.floats(shape),
        scales=_scales(draw, shape),
        coord_transformer=draw.turn([None, *_COORDINATES]),
        interpolator=interpolator,
        nearest_mode=draw.pick([None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]),
        cubic_coeff_a=draw.pick([None, -0.5]),
        exclude_outside=draw.pick([None, True]) if interpolator == "cubic" else None,
        antialias=draw.pick([None, None, True]) if smooth else None,
    )


@recipe("tract_core_grid_sample", "tract_onnx_grid_sample")
def _grid_sample(draw: Draw) -> dict[str, Any]:
    mode = draw.turn([None, "bilinear", "nearest", "bicubic"])
    axes = 2 if mode == "bicubic" else draw.turn([2, 2, 1, 3])
    batch = draw.integer(1, 2)
    return arguments(
        input=draw.floats([batch, draw.integer(1, 3), *draw.shape(axes, 2, 6)]),
        grid=draw.floats([batch, *draw.shape(axes, 1, 4), axes], "f32", 0.8),
        mode=mode,
        padding_mode=draw.pick([None, "zeros", "border", "reflection"]),
        align_corners=draw.pick([None, False, True]),
    )
