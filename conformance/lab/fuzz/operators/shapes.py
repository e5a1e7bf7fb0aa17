"""Other shapes of the same elements: reshapes with computed sizes, transposes, repetitions, windows."""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft
from conformance.lab.fuzz.operators.sizes import FACTORS, SMALL, any_size, computed
from conformance.lab.fuzz.operators.slices import at, pads


def flatten(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) > 1)
    first = d.randint(0, d.rank(v) - 2)
    return d.tensor(
        f"{v}.flatten({first}, {d.randint(first + 1, d.rank(v) - 1)})" if d.chance(0.8) else f"{v}.flatten(1)"
    )


def frames(d: Draft) -> str:
    """Cut to a multiple, then k steps stacked to one."""
    v = d.pick(lambda name: d.rank(name) < 5)
    axis = d.axis(v, 1.0)
    n, k = d.extent(v, axis), d.one_of(FACTORS)
    if d.chance(0.5):
        divisible = d.tensor(v + at(axis, f":{n} // {k} * {k}"))
    else:
        divisible = d.tensor(f"F.pad({v}, {pads(d, v, axis, '0', f'-{n} % {k}')})")
    if d.chance(0.4):
        return d.tensor(f"{divisible}.unflatten({axis}, (-1, {k}))")
    sizes = [d.extent(v, a) for a in range(d.rank(v))]
    if axis == d.rank(v) - 2 and d.chance(0.5):
        return d.tensor(f"{divisible}.reshape({', '.join([*sizes[:axis], '-1', f'{k} * {sizes[-1]}'])})")
    count = f"{n} // {k}" if d.chance(0.4) else "-1"
    return d.tensor(f"{divisible}.reshape({', '.join([*sizes[:axis], count, str(k), *sizes[axis + 1 :]])})")


def reshape(d: Draft) -> str:
    """To given sizes, one of them -1 now and then; merges or splits axes."""
    v = d.pick(lambda name: d.rank(name) > 0)
    sizes = [d.extent(v, a) for a in range(d.rank(v))]
    call = d.one_of(("reshape", "reshape", "contiguous().view"))
    form = d.one_of(("merge", "merge", "rest", "split", "one", "last"))
    if form == "merge" and len(sizes) > 1:
        a = d.randint(0, len(sizes) - 2)
        merged = f"{sizes[a]} * {sizes[a + 1]}"
        target_sizes = [*sizes[:a], d.one_of((merged, "-1")), *sizes[a + 2 :]]
    elif form == "rest":
        prefix_length = d.randint(0, len(sizes) - 1)
        target_sizes = [*sizes[:prefix_length], "-1"]
    elif form == "split":
        a = d.one_of([a for a in range(len(sizes)) if (d.fixed(v, a) or 1) % 2 == 0])
        target_sizes = [*sizes[:a], "2", f"{sizes[a]} // 2", *sizes[a + 1 :]]
    elif form == "one":
        a = d.randint(0, len(sizes))
        target_sizes = [*sizes[:a], "1", *sizes[a:]]
    else:
        target_sizes = ["-1", sizes[-1]]
    return d.tensor(f"{v}.{call}({', '.join(target_sizes)})")


def heads(d: Draft) -> str:
    """[…, n, c] to […, h, n, c / h]."""
    v = d.pick(lambda name: d.rank(name) == 3 and (d.fixed(name, 2) or 1) % 2 == 0)
    sizes = [d.extent(v, a) for a in range(3)]
    return d.tensor(f"{v}.view({sizes[0]}, {sizes[1]}, 2, {sizes[2]} // 2).transpose(1, 2)")


def transpose(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) > 1)
    rank = d.rank(v)
    if d.chance(0.7):
        a, b = d.rng.sample(range(rank), 2)
        return d.tensor(f"{v}.transpose({a}, {b})")
    order = list(range(rank))
    d.rng.shuffle(order)
    return d.tensor(f"{v}.permute({', '.join(map(str, order))})")


def unsqueeze(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) < 4)
    return d.tensor(f"{v}.unsqueeze({d.randint(0, d.rank(v))})")


def squeeze(d: Draft) -> str:
    v = d.pick(lambda name: any(d.fixed(name, a) == 1 for a in range(d.rank(name))))
    return d.tensor(f"{v}.squeeze({d.one_of([a for a in range(d.rank(v)) if d.fixed(v, a) == 1])})")


def expand(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) < 4)
    ones = [a for a in range(d.rank(v)) if d.fixed(v, a) == 1]
    if ones and d.chance(0.7):
        axis = d.one_of(ones)
    else:
        axis = d.randint(0, d.rank(v))
        v = d.tensor(f"{v}.unsqueeze({axis})")
    n = any_size(d) if d.chance(0.7) else str(d.one_of((2, 3)))
    target_sizes = [n if a == axis else d.one_of(("-1", d.extent(v, a))) for a in range(d.rank(v))]
    return d.tensor(f"{v}.expand({', '.join(target_sizes)})")


def repeat(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    if d.chance(0.3):
        return d.tensor(f"{v}.repeat_interleave({d.one_of((2, 3))}, dim={axis})")
    count = str(d.one_of((2, 2, 3))) if d.chance(0.8) else computed(d)
    return d.tensor(f"{v}.repeat({', '.join(count if a == axis else '1' for a in range(d.rank(v)))})")


def roll(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    by = str(d.one_of((1, -1, 2, -3, 5, 9))) if d.chance(0.6) else computed(d)
    return d.tensor(f"{v}.roll({by}, {axis})")


def flip(d: Draft) -> str:
    v = d.pick()
    return d.tensor(f"{v}.flip({d.axis(v)})")


def unfold(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) < 4)
    axis = d.axis(v, 1.0)
    width, hop = d.one_of((1, 2, 3, 4, 5)), d.one_of((1, 1, 2, 3))
    if width > 1 and d.chance(0.6):
        v = d.tensor(f"F.pad({v}, {pads(d, v, axis, str(d.one_of((0, width // 2))), str(width - 1))})")
    return d.tensor(f"{v}.unfold({axis}, {width}, {hop})")


def resized(d: Draft) -> str:
    """Pads up to, or repeats to, a common size with another tensor."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    n = d.extent(v, axis)
    m = d.size(f"max({n}, {any_size(d)})") if d.chance(0.5) else d.size(f"{n} + {d.one_of(SMALL)}")
    return d.tensor(f"F.pad({v}, {pads(d, v, axis, '0', f'{m} - {n}')})")


OPERATORS: dict[Callable[[Draft], str], float] = {
    flatten: 3,
    frames: 5,
    reshape: 5,
    heads: 1.5,
    transpose: 5,
    unsqueeze: 1.5,
    squeeze: 1,
    expand: 3,
    repeat: 2,
    roll: 2,
    flip: 1,
    unfold: 2.5,
    resized: 1,
}
