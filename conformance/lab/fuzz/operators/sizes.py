"""Integers computed from sizes: floor and ceiling quotients, remainders, minima, maxima, sums and products."""

from __future__ import annotations

from conformance.lab.fuzz.draft import Draft, Rejected

SMALL = (1, 2, 3, 4, 5, 6, 7, 8)
BOUNDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 17, 20, 31, 32, 33)
FACTORS = (2, 2, 2, 3, 3, 4, 4, 5, 8)


def any_size(d: Draft) -> str:
    """Return the size of a dynamic axis, or a size computed by an earlier step."""
    size_names = [step.name for step in d.steps if step.is_size]
    if size_names and d.chance(0.5):
        return str(d.one_of(size_names))
    name = d.pick(lambda candidate: bool(d.moving(candidate)), "fib")
    axis = d.one_of(d.moving(name))
    return d.extent(name, axis)


def computed(d: Draft, of: str = "") -> str:
    """Return a new integer computed from one size or two."""
    n = of or any_size(d)
    k, c = d.one_of(FACTORS), d.one_of(BOUNDS)
    other = any_size(d)
    text = d.rng.choices(
        [
            f"{n} // {k}",
            f"({n} + {k - 1}) // {k}",
            f"-(-{n} // {k})",
            f"{n} % {k}",
            f"-{n} % {k}",
            f"{n} // {k} * {k}",
            f"min({n}, {c})",
            f"max({n}, {c})",
            f"max({n} - {c}, 0)",
            f"{n} - {d.one_of(SMALL)}",
            f"{n} + {d.one_of(SMALL)}",
            f"{n} * {k}",
            f"min({n}, {other})",
            f"max({n}, {other})",
            f"{n} + {other}",
            f"{n} * {other}",
            f"abs({n} - {other})",
            f"max(0, min({n} - {c}, {d.one_of(BOUNDS)}))",
            f"({n} - {d.one_of(SMALL)}) // {k} + 1",
            f"int({n} * 0.5)",
            f"{n} - {other} // 2",
        ],
        weights=[6, 5, 2, 4, 3, 6, 8, 4, 6, 4, 3, 3, 3, 2, 2, 1.5, 0.5, 1.5, 2, 1, 1],
    )[0]
    return d.size(text)


def part_of(d: Draft, n: str) -> str:
    """Return a bound inside an axis of `n` elements, or not far beyond: a number, or computed from sizes."""
    if d.chance(0.5):
        return str(d.one_of(BOUNDS))
    return computed(d, n if d.chance(0.7) and not n.isdigit() else "")


def never_negative(d: Draft, n: str) -> str:
    """`n`, which must not be negative in any run. Raises Rejected."""
    if not n.isdigit() and any(value < 0 for value in d.values(n)):
        raise Rejected
    return n
