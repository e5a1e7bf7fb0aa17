"""Resizing with antialiasing: an axis times a matrix of weights, known at export or computed in the graph."""

from __future__ import annotations

import numpy as np
import torch

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op import formulas
from t2n_core.op.aten.resize_axis import Axis
from t2n_core.torch_graph.compat.operators import operator

FUNCTIONS = {"bilinear": operator("aten::_upsample_bilinear2d_aa"), "bicubic": operator("aten::_upsample_bicubic2d_aa")}
SHARPNESS = -0.5
"""The `A` of the cubic convolution, which differs from the one without antialiasing."""


def resize_antialiased(g: Emitter, value: Value, axis: Axis, name: str, align_corners: bool) -> Value:
    """Resize an axis of [..., extent, ...]; `name` is the name of the filter."""
    last = [*(i for i in range(value.rank) if i != axis.place), axis.place]
    if axis.is_static():
        unit = torch.eye(int(axis.extent), dtype=torch.float64)[None, None]
        matrix = FUNCTIONS[name](unit, [axis.size, axis.extent], align_corners, axis.scale, None)[0, 0].numpy()
        weights = g.constant(matrix.T.astype(value.dtype))
    else:
        weights = g.cast(_weights(g, axis, name, align_corners), value.dtype)
    out = g.matmul(g.permute(value, last), g.lift(weights, value.rank))
    return g.permute(out, np.argsort(last).tolist())


def _weights(g: Emitter, axis: Axis, name: str, align_corners: bool) -> Value:
    """Return the weights [extent, size] of a dynamic axis: a filter around each position, as wide as a step is long."""
    step = axis.step(g, align_corners)
    step = step if isinstance(step, Value) else g.constant(np.asarray(step, FLOAT32))
    outputs = g.unsqueeze(g.cast(g.positions(axis.size), FLOAT32), axes=[0])
    inputs = g.unsqueeze(g.cast(g.positions(axis.extent), FLOAT32), axes=[1])
    distance = g.sub(g.add(inputs, 0.5), g.mul(g.add(outputs, 0.5), step))
    x = formulas.absolute(g, g.div(distance, g.lift(g.max(step, 1.0), 2)))
    raw = g.max(g.sub(1.0, x), 0.0) if name == "bilinear" else _cubic(g, x)
    return g.div(raw, g.sum_reduce(raw, axes=[0]))


def _cubic(g: Emitter, x: Value) -> Value:
    """((A + 2) x - (A + 3)) x^2 + 1 up to 1; ((A x - 5 A) x + 8 A) x - 4 A up to 2."""
    near = g.add(g.mul(g.mul(g.sub(g.mul(x, SHARPNESS + 2), SHARPNESS + 3), x), x), 1.0)
    far = g.mul(g.sub(g.mul(g.add(g.mul(g.sub(x, 5.0), x), 8.0), x), 4.0), SHARPNESS)
    return g.select(g.lt(x, 1.0), near, g.select(g.lt(x, 2.0), far, 0.0))
