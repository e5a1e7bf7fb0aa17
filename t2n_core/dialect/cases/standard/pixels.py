"""Cases of the standard's operators that resample an image."""

from __future__ import annotations

from typing import Any

from t2n_core.dialect.cases.draw import Draw
from t2n_core.dialect.cases.recipes import recipe


@recipe("nearest_downsample", "area_downsample", dynamic="first")
def _down(draw: Draw) -> dict[str, Any]:
    spatial = draw.turn([1, 2, 2])
    factor = draw.shape(spatial, 1, 3)
    counts = draw.shape(spatial, 1, 4)
    shape = [draw.integer(1, 2), draw.integer(1, 3), *(a * b for a, b in zip(factor, counts, strict=True))]
    return {"input": draw.floats(shape), "factor": factor}


@recipe("nearest_upsample", dynamic="first")
def _nearest(draw: Draw) -> dict[str, Any]:
    spatial = draw.turn([1, 2, 2])
    shape = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(spatial, 1, 5)]
    return {"input": draw.floats(shape), "factor": draw.shape(spatial, 1, 3)}


@recipe("multilinear_upsample", dynamic="first")
def _multilinear(draw: Draw) -> dict[str, Any]:
    spatial = draw.turn([2, 1, 2])
    shape = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(spatial, 2, 5)]
    method = draw.turn(["symmetric", "asymmetric", "aligned", "symmetric"])
    return {
        "input": draw.floats(shape),
        "factor": draw.turn([[2] * spatial, draw.shape(spatial, 2, 3), [2] * spatial]),
        "method": method,
        "border": draw.turn(["replicate", "replicate", "constant", "replicate", "replicate"]),
    }
