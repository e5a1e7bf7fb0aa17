"""Products and convolutions, with filters that are stored or computed."""

from __future__ import annotations

from conformance.dialect.passes.lines import Line, Lines


def multiplied(lines: Lines, x: Line) -> Line | None:
    """Multiply by a stored matrix, or by the result of a transpose or slice."""
    rank = len(x.shape)
    turn = lines.draw.integer(0, 3) == 0
    if rank < 2 or x.symbol == rank - (2 if turn else 1):
        return None
    inner, columns = x.shape[-2 if turn else -1], lines.draw.integer(2, 9)
    turn_b = lines.draw.flag()
    ones = [1] * (rank - 2)
    shape = [*ones, columns, inner] if turn_b else [*ones, inner, columns]
    if lines.draw.flag():
        return lines.matmul(x, lines.stored(shape), turn_a=turn, turn_b=turn_b)
    order = [*range(rank - 2), rank - 1, rank - 2]
    b = lines.transpose(lines.stored([shape[axis] for axis in order]), order)
    return lines.matmul(x, b, turn_a=turn, turn_b=turn_b)


def convolved(lines: Lines, x: Line) -> Line | None:
    """Convolve along the last of three axes: densely, in groups or by channel, with a stored or computed filter."""
    if len(x.shape) != 3 or x.symbol in (1, 2):
        return None
    channels = x.shape[1]
    size = lines.draw.integer(1, min(3, x.shape[2]))
    groups = lines.draw.pick([1, channels, channels, *(divisor for divisor in (2, 3) if channels % divisor == 0)])
    shape = groups * lines.draw.pick([1, 1, 2, 3]), channels // groups, size
    return lines.conv(x, _filter(lines, shape), groups=groups, stride=lines.draw.pick([1, 1, 2]))


def _filter(lines: Lines, shape: tuple[int, int, int]) -> Line:
    """Return a convolution's filter, stored or computed by other statements."""
    most, inner, size = shape
    variant = lines.draw.integer(0, 6)
    source = lines.given if lines.draw.integer(0, 1) == 0 else lines.stored
    if variant == 0 and inner == 1:
        return lines.unsqueeze(source([most, size]), 1)
    if variant in (1, 2) and inner == 1:
        rows = lines.slice(source([most, size + 2]), 1, variant - 1, size + variant - 1)
        return lines.unsqueeze(rows, 1)
    if variant == 3 and inner == 1:
        return lines.reshape(lines.transpose(source([size, most]), [1, 0]), 0, 2, shape)
    if variant == 4:
        return lines.slice(source([most, inner, size + 1]), 2, 1, size + 1)
    if variant == 5:
        return lines.transpose(source([size, most, inner]), [1, 2, 0])
    return lines.stored(shape)


def pooled(lines: Lines, x: Line) -> Line | None:
    """Take the maximum or the mean of windows along the last of three axes."""
    if len(x.shape) != 3 or x.symbol in (1, 2):
        return None
    size, stride = lines.draw.integer(1, min(3, x.shape[2])), lines.draw.pick([1, 2])
    arguments = {"size": [1, 1, size], "border": "ignore", "padding": [(0, 0)] * 3, "stride": [1, 1, stride]}
    op = lines.draw.pick(["max_pool", "avg_pool"])
    shape = (*x.shape[:2], (x.shape[2] - size) // stride + 1)
    return lines.step(op, shape, x.symbol, input=x, **arguments, dilation=[1, 1, 1])


def compared(lines: Lines, x: Line) -> Line | None:
    """Multiply a value by its own transpose, and the weights by it: an attention without its softmax."""
    rank = len(x.shape)
    if rank < 2 or x.symbol in (rank - 1, rank - 2):
        return None
    weights = lines.matmul(x, x, turn_b=True)
    return lines.matmul(weights, x) if lines.draw.flag() else weights


def contracted(lines: Lines, x: Line) -> Line | None:
    """Sum a product with a stored tensor over one axis, which keeps the order of the axes or turns it."""
    axes = x.axes()
    if not axes:
        return None
    letters, axis = "abcdefgh"[: len(x.shape)], lines.draw.pick(axes)
    free_letters = [letter for letter in letters if letter != letters[axis]]
    order = [*free_letters, "z"]
    order = [order[at] for at in lines.draw.permutation(len(order))]
    extents = dict(zip(letters, x.shape, strict=True)) | {"z": lines.draw.integer(2, 9)}
    weights = lines.stored([extents[letters[axis]], extents["z"]])
    symbol = None if x.symbol is None else order.index(letters[x.symbol])
    expression = f"{letters},{letters[axis]}z->{''.join(order)}"
    shape = [extents[letter] for letter in order]
    return lines.step("tract_core_einsum", shape, symbol, inputs=[x, weights], expr=expression, acc="f32", output="")
