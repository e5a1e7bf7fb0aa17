"""Running operators along a long axis, scaled so that values stay of order one, and what models do with them.

The batch has other operators: where an axis of one element is next to one of 100,000, blocks are mostly padding.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft


def _long_axis(d: Draft, v: str) -> int:
    """Return the axis that is longest at the sizes that are tried. Raises Rejected where none varies."""
    return int(d.one_of(sorted(d.moving(v), key=lambda axis: sum(d.extents(v, axis)))[-1:]))


def running(d: Draft) -> str:
    """Return a running sum, product or extreme of floats."""
    v = d.pick()
    axis = _long_axis(d, v)
    return d.tensor(
        d.one_of(
            (
                f"torch.tanh({v}).cumsum({axis}) * 0.01",
                f"torch.cumsum(torch.sin({v}) / 50, {axis})",
                f"(1 + torch.tanh({v}) * 1e-3).cumprod({axis})",
                f"torch.cumprod(torch.cos({v}), {axis})",
                f"({v} * 3).logcumsumexp({axis}) / 4",
                f"{v}.cummax({axis})[0]",
                f"{v}.cummin({axis})[0]",
            )
        )
    )


def backwards(d: Draft) -> str:
    v = d.pick()
    axis = _long_axis(d, v)
    return d.tensor(f"(torch.tanh({v}) * 0.01).flip({axis}).cumsum({axis}).flip({axis})")


def of_integers(d: Draft) -> str:
    """Return a count, or where the running extreme is, as a share of the length."""
    v = d.pick()
    axis = _long_axis(d, v)
    n = d.size(f"{v}.shape[{axis}]")
    text = d.one_of(
        (
            f"({v} > 0.5).cumsum({axis})",
            f"({v} * 3).to(torch.int64).cumsum({axis})",
            f"({v} * 3).round().to(torch.int32).cummax({axis})[0]",
            f"({v} * 3).round().to(torch.int64).cummin({axis})[0]",
        )
    )
    return d.tensor(f"{text}.to(torch.float32) / {n}")


def phase(d: Draft) -> str:
    """Return the sine of a running sum of frequencies, which has many periods at the end of a long axis."""
    v = d.pick()
    axis = _long_axis(d, v)
    frequency = d.one_of(("0.01", "1 / 128", "2 * math.pi * 25 / 24000"))
    return d.tensor(f"torch.sin({d.tensor(f'torch.cumsum(torch.sigmoid({v}) * {frequency}, {axis})')})")


def part(d: Draft) -> str:
    """Return a running operator of a part of an axis, or a part of one of its results."""
    v = d.pick()
    axis = _long_axis(d, v)
    slice_text = d.one_of(("1:", ":-1", "::2", "1::3", "-70:"))
    before = ", ".join(":" for _ in range(axis))
    index = f"[{before}{', ' if before else ''}{slice_text}]"
    if d.chance(0.5):
        return d.tensor(f"(torch.tanh({v}) * 0.01){index}.cumsum({axis})")
    return d.tensor(f"{v}.cummax({axis})[0]{index}")


def mean_so_far(d: Draft) -> str:
    """Return the mean of all elements up to each place."""
    v = d.pick()
    axis = _long_axis(d, v)
    shape = ["1"] * d.rank(v)
    shape[axis] = "-1"
    places = f"torch.arange(1, {v}.shape[{axis}] + 1).reshape({', '.join(shape)})"
    return d.tensor(f"torch.tanh({v}).cumsum({axis}) / {places}")


OPERATORS: dict[Callable[[Draft], str], float] = {
    running: 8,
    of_integers: 3,
    phase: 1.5,
    backwards: 1,
    part: 1.5,
    mean_so_far: 1,
}
