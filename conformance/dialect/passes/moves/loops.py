"""Loops over an axis, with bodies that hold what passes move into them."""

from __future__ import annotations

import math

from conformance.dialect.passes.lines import Line, Lines


def looped(lines: Lines, x: Line) -> Line:
    """Loop over an axis, element by element, from either end; or by two elements."""
    axis = lines.draw.integer(0, len(x.shape) - 1)
    chunks = [1, 1, -1, *([2] if x.shape[axis] % 2 == 0 and axis != x.symbol else [])]
    chunk = lines.draw.pick(chunks)
    shape = [*x.shape[:axis], abs(chunk), *x.shape[axis + 1 :]]
    full: list[Line] = []
    bodies = ["sum", "larger", "gated", "turned", "squeezed", "flat", "matrix", "parts"]
    body = lines.draw.pick(bodies)
    if body == "matrix" and len(shape) > 1 and axis < len(shape) - 1 and x.symbol != len(shape) - 1:
        full = [lines.stored([*[1] * (len(shape) - 2), shape[-1], shape[-1]])]
    return lines.scan(x, axis, chunk, _body(lines, body, x, axis, shape, has_matrix=bool(full)), full)


def _body(lines: Lines, kind: str, x: Line, axis: int, shape: list[int], *, has_matrix: bool) -> str:
    """Return the statements that compute `new` and `row` from `old` and `chunk`."""
    rank, inner = len(shape), x.symbol in (None, axis)
    if kind == "larger":
        return "new = max(old, chunk);\n    row = sub(new, chunk);"
    if kind == "gated":
        return "gate = sigmoid(chunk);\n    kept = mul(old, gate);\n    new = add(kept, chunk);\n    row = tanh(new);"
    if kind == "turned":
        order = lines.draw.permutation(rank)
        back = [order.index(at) for at in range(rank)]
        turned = f"there = transpose(chunk, axes = {order});\n    inner = tanh(there);"
        return f"{turned}\n    back = transpose(inner, axes = {back});\n    new = add(old, back);\n    row = abs(new);"
    if kind == "squeezed" and shape[axis] == 1:
        squeezed = f"there = squeeze(chunk, axes = [{axis}]);\n    inner = sigmoid(there);"
        return f"{squeezed}\n    row = unsqueeze(inner, axes = [{axis}]);\n    new = sub(row, old);"
    if kind == "flat" and inner:
        flat = f"there = reshape(chunk, shape = [{math.prod(shape)}]);\n    inner = tanh(there);"
        return f"{flat}\n    row = reshape(inner, shape = {shape});\n    new = max(old, row);"
    if has_matrix:
        return (
            "kept = matmul(old, w_0);\n    inner = add(kept, chunk);\n    new = tanh(inner);\n    row = mul(new, 0.5);"
        )
    axes = [at for at in range(rank) if at not in (axis, x.symbol) and shape[at] > 1]
    if kind == "parts" and axes:
        at = axes[0]
        ends = [(1, shape[at]), (0, 1)]
        cut = [f"part_{n} = slice(old, axes = [{at}], begin = [{b}], end = [{e}]);" for n, (b, e) in enumerate(ends)]
        rolled = f"rolled = concat([part_0, part_1], axis = {at});"
        return "\n    ".join([*cut, rolled, "new = add(rolled, chunk);", "row = tanh(new);"])
    return "new = add(old, chunk);\n    row = mul(new, 0.5);"
