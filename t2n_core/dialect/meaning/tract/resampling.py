"""Resampling: resizing along the axes, and sampling at the points of a grid."""

from __future__ import annotations

import itertools

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def cubic(distance: Array, a: float) -> Array:
    """Return the cubic convolution kernel of parameter `a` at distances from a sample."""
    far = np.abs(distance)
    near = ((a + 2.0) * far - (a + 3.0)) * far**2 + 1.0
    further = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a
    return np.where(far <= 1.0, near, np.where(far < 2.0, further, 0.0))


def _coordinates(mode: str, scale: float, length: int, resized: int, roi: tuple[float, float], op: str) -> Array:
    """Return the place in the input of each element of the result along one axis, in float32."""
    x, by = np.arange(resized, dtype=np.float32), np.float32(scale)
    half, extent = np.float32(0.5), np.float32(length)
    match mode:
        case "half_pixel":
            return np.asarray((x + half) / by - half)
        case "align_corners":
            width = by * extent
            return np.zeros_like(x) if width == 1 else np.asarray(x * (extent - 1) / (width - 1))
        case "asymmetric":
            return np.asarray(x / by)
        case "pytorch_half_pixel":
            return np.asarray((x + half) / by - half) if resized > 1 else np.zeros_like(x)
        case "half_pixel_symmetric":
            offset = extent / 2 * (1 - np.float32(resized) / (by * extent))
            return np.asarray(offset + (x + half) / by - half)
        case "tf_half_pixel_for_nn":
            return np.asarray((x + half) / by)
        case "tf_crop_and_resize":
            start, end = np.float32(roi[0]), np.float32(roi[1])
            if resized > 1:
                return np.asarray(start * (extent - 1) + x * (end - start) * (extent - 1) / np.float32(resized - 1))
            return np.full_like(x, half * (start + end) * (extent - 1))
        case _:
            raise SpecError(f"no coordinates are called {mode!r}", op=op)


def _nearest(places: Array, mode: str, op: str) -> Array:
    match mode:
        case "floor":
            return np.floor(places)
        case "ceil":
            return np.ceil(places)
        case "round_prefer_floor":
            return np.ceil(places - np.float32(0.5))
        case "round_prefer_ceil":
            return np.floor(places + np.float32(0.5))
        case _:
            raise SpecError(f"no rounding of coordinates is called {mode!r}", op=op)


def _weights(
    places: Array, length: int, interpolator: str, nearest: str, stretch: float, a: float, outside: bool, op: str
) -> Array:
    """Return the matrix [result, input] of the weights along one axis."""
    matrix = np.zeros([len(places), length])
    for at, coordinate in enumerate(places.astype(np.float64)):
        if interpolator == "nearest":
            taps, weights = _nearest(places[at : at + 1], nearest, op).astype(np.int64), np.ones(1)
        else:
            reach = (2.0 if interpolator == "cubic" else 1.0) * stretch
            taps = np.arange(int(np.floor(coordinate - reach)), int(np.ceil(coordinate + reach)) + 1)
            away = (taps - coordinate) / stretch
            weights = cubic(away, a) if interpolator == "cubic" else np.maximum(1.0 - np.abs(away), 0.0)
            weights = weights / weights.sum()
        if outside:
            weights = np.where((taps >= 0) & (taps < length), weights, 0.0)
            weights = weights / weights.sum() if weights.sum() else weights
        np.add.at(matrix[at], np.clip(taps, 0, length - 1), weights)
    return matrix


def resize(
    input: Array,
    scales: Array | None,
    sizes: Array | None,
    coord_transformer: str,
    interpolator: str,
    nearest_mode: str,
    *,
    op: str,
    a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Array | None = None,
    extrapolation_value: float = 0.0,
) -> Array:
    """Return the input resized along each axis, by its scale or to its size.

    Raises SpecError for an unknown word, or where not exactly one of scales and sizes is given for all axes.
    """
    if interpolator not in ("nearest", "linear", "cubic"):
        raise SpecError(f"no interpolation is called {interpolator!r}", op=op)
    passed = [value for value in (scales, sizes) if value is not None and np.asarray(value).ndim]
    if len(passed) != 1 or len(passed[0]) != input.ndim:
        raise SpecError("one of `scales` and `sizes` is needed, with an element for each axis", op=op)
    if passed[0] is scales:
        factors = [float(np.float32(scale)) for scale in passed[0]]
        shape = [int(np.floor(extent * factor)) for extent, factor in zip(input.shape, factors, strict=True)]
    else:
        shape = [int(size) for size in passed[0]]
        factors = [size / extent for size, extent in zip(shape, input.shape, strict=True)]
    output, crops = input, coord_transformer == "tf_crop_and_resize"
    for axis, (length, resized, factor) in enumerate(zip(input.shape, shape, factors, strict=True)):
        if factor == 1.0 and not crops:
            continue
        region = (0.0, 1.0) if roi is None else (float(roi[axis]), float(roi[axis + input.ndim]))
        places = _coordinates(coord_transformer, factor, length, resized, region, op)
        stretch = max(1.0, 1.0 / factor) if antialias else 1.0
        matrix = _weights(places, length, interpolator, nearest_mode, stretch, a, exclude_outside, op)
        output = np.moveaxis(np.tensordot(matrix, output, axes=([1], [axis])), 0, axis)
        if crops:
            beyond = (places < 0) | (places > length - 1)
            output[(slice(None),) * axis + (beyond,)] = extrapolation_value
    return output


@defines("tract_core_resize")
def core_resize(
    input: Array,
    scales: Array | None = None,
    sizes: Array | None = None,
    coord_transformer: str = "half_pixel",
    interpolator: str = "nearest",
    nearest_mode: str = "floor",
) -> Array:
    """Return the input resized along each axis, by its scale or to its size.

    Formula: each element is interpolated in the input at the coordinate of `coord_transformer`: `half_pixel` (x + 0.5)
    / scale - 0.5; `asymmetric` x / scale; `align_corners` x * (extent - 1) / (scale * extent - 1); `pytorch_half_pixel`
    as `half_pixel`, and 0 where the result has one element; `half_pixel_symmetric`, which centres a result of rounded
    size; `tf_half_pixel_for_nn` (x + 0.5) / scale. `interpolator`: `nearest` (by `nearest_mode` `floor` or
    `round_prefer_ceil`), `linear`, `cubic` (parameter -0.75). Beyond the edges the edge is repeated. Shapes:
    floor(extent * scale), or the sizes, for each axis; exactly one of both is given. Coordinates are float32, as the
    scales are, which decides where nearest neighbours change.
    Source: ONNX Resize-18; tract core/src/ops/nn/resize.rs.
    """
    if nearest_mode not in ("floor", "round_prefer_ceil"):
        raise SpecError(f"no rounding of coordinates is called {nearest_mode!r}", op="tract_core_resize")
    return resize(input, scales, sizes, coord_transformer, interpolator, nearest_mode, op="tract_core_resize")


@defines("tract_onnx_resize")
def onnx_resize(
    input: Array,
    scales: Array,
    roi: Array | None = None,
    coord_transformer: str = "half_pixel",
    interpolator: str = "nearest",
    nearest_mode: str = "floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    extrapolation_value: float = 0.0,
) -> Array:
    """Return the input resized along each axis by its scale, with all options of ONNX.

    Formula: `tract_core_resize`; with `nearest_mode` `round_prefer_floor` and `ceil` too; `cubic_coeff_a` is the
    parameter of the cubic kernel; `exclude_outside` gives elements beyond the edges the weight 0, and divides by the
    sum of the others; `antialias` stretches the kernel of `linear` and `cubic` by 1 / scale where the scale is below 1;
    `tf_crop_and_resize` spreads the result over the region `roi` (all starts, then all ends, as fractions), and is
    `extrapolation_value` outside the input.
    Source: ONNX Resize-18; tract onnx-opl/src/resize.rs.
    """
    return resize(
        input,
        scales,
        None,
        coord_transformer,
        interpolator,
        nearest_mode,
        op="tract_onnx_resize",
        a=cubic_coeff_a,
        exclude_outside=exclude_outside,
        antialias=antialias,
        roi=roi if roi is not None and np.asarray(roi).ndim else None,
        extrapolation_value=extrapolation_value,
    )


def _reflected(x: Array, low: float, high: float) -> Array:
    """Return coordinates folded at two bounds until they are between them."""
    if high == low:
        return np.full_like(x, low)
    folded = np.mod(x - low, 2.0 * (high - low))
    return low + np.minimum(folded, 2.0 * (high - low) - folded)


def _padded(x: Array, extent: int, padding: str, align: bool) -> Array:
    if padding == "border":
        return np.clip(x, 0.0, extent - 1.0)
    if padding == "reflection":
        low, high = (0.0, extent - 1.0) if align else (-0.5, extent - 0.5)
        return np.clip(_reflected(x, low, high), 0.0, extent - 1.0)
    return x


def _taps(x: Array, mode: str) -> list[tuple[Array, Array]]:
    """Return the whole coordinates that a coordinate is interpolated from, each with its weight."""
    if mode == "nearest":
        return [(x, np.ones_like(x))]
    cell = np.floor(x)
    if mode == "bilinear":
        return [(cell, cell + 1.0 - x), (cell + 1.0, x - cell)]
    return [(cell + step, cubic(x - cell - step, -0.75)) for step in (-1.0, 0.0, 1.0, 2.0)]


@defines("tract_core_grid_sample", "tract_onnx_grid_sample")
def grid_sample(
    input: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Array:
    """Return the input, interpolated at the points of a grid.

    Formula: a coordinate g in [-1, 1] is the place ((g + 1) * extent - 1) / 2, or (g + 1) / 2 * (extent - 1) with
    `align_corners`, along an axis; the last axis of the grid holds a point's coordinates, the input's last axis
    first. `mode`: `bilinear`, `nearest` (ties to even), `bicubic` (parameter -0.75, two axes only).
    `padding_mode`: beyond the input are `zeros`, the `border`, or its `reflection` at the border (at the last element's
    centre with `align_corners`). Shapes: input [N, C, spatial..], grid [N, out.., k], result [N, C, out..].
    Domain: finite coordinates.
    Source: torch.nn.functional.grid_sample; ONNX GridSample-20; tract core/src/ops/nn/grid_sample.rs.
    """
    words = (("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"))
    if mode not in words[0] or padding_mode not in words[1]:
        raise SpecError(f"no grid is sampled by {mode!r} with {padding_mode!r}", op="tract_core_grid_sample")
    extents, axes = input.shape[2:], input.ndim - 2
    if mode == "bicubic" and axes != 2:
        raise SpecError(f"`bicubic` for {axes} axes", op="tract_core_grid_sample")
    places = []
    for axis, extent in enumerate(extents):
        g = grid[..., axes - 1 - axis]
        x = (g + 1.0) / 2.0 * (extent - 1.0) if align_corners else ((g + 1.0) * extent - 1.0) / 2.0
        if mode != "bicubic":
            x = _padded(np.rint(x) if mode == "nearest" else x, extent, padding_mode, align_corners)
        places.append(_taps(x, mode))
    batch = np.arange(input.shape[0]).reshape([-1, *[1] * axes])
    output = np.zeros([input.shape[0], *grid.shape[1:-1], input.shape[1]])
    channels_last = np.moveaxis(input, 1, -1)
    for corner in itertools.product(*places):
        weight, where = np.ones(grid.shape[:-1]), []
        for (tap, share), extent in zip(corner, extents, strict=True):
            inside = _padded(tap, extent, padding_mode, align_corners)
            weight = weight * share * ((inside >= 0) & (inside < extent))
            where.append(np.clip(inside, 0, extent - 1).astype(np.int64))
        output += weight[..., None] * channels_last[(batch, *where)]
    return np.moveaxis(output, -1, 1)
