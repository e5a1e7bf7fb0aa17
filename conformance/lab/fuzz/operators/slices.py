"""Parts of a tensor: slices with bounds that may lie beyond the axis, pieces, crops, paddings, joins."""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft
from conformance.lab.fuzz.operators.sizes import BOUNDS, FACTORS, SMALL, any_size, computed, part_of


def at(axis: int, index: str) -> str:
    """`[:, :, index]`."""
    return f"[{', '.join([':'] * axis + [index])}]"


def constant_slice(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    start = str(d.randint(-12, 12)) if d.chance(0.35) else str(d.one_of(SMALL)) if d.chance(0.3) else ""
    stop = str(d.one_of(BOUNDS) * d.one_of((1, 1, -1))) if d.chance(0.7) or not start else ""
    step = f":{d.one_of((2, 2, 3, 4))}" if d.chance(0.25) else ""
    return d.tensor(f"{v}{at(axis, f'{start}:{stop}{step}')}")


def last_steps(d: Draft) -> str:
    v = d.pick()
    count = d.one_of(BOUNDS)
    return d.tensor(v + at(d.axis(v, 1.0), d.one_of((f"-{count}:", f":-{count}", f"{count}:", f"{count}:-{count}"))))


def every_few(d: Draft) -> str:
    v = d.pick()
    return d.tensor(v + at(d.axis(v, 1.0), f"{d.one_of(('', 0, 1, 2, 3))}::{d.one_of((2, 2, 3, 4, 5))}"))


def computed_slice(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v, 1.0)
    n = d.extent(v, axis)
    a = computed(d, n if d.chance(0.7) and not n.isdigit() else "")
    form = d.one_of(("end", "end", "begin", "last", "without", "both", "window", "step"))
    if form == "both":
        return d.tensor(v + at(axis, f"{a}:{computed(d)}"))
    forms = {
        "end": f":{a}",
        "begin": f"{a}:",
        "last": f"-{a}:",
        "without": f":-{a}",
        "window": f"{a}:{a} + {d.one_of(SMALL)}",
        "step": f":{a}:{d.one_of((2, 3))}",
    }
    return d.tensor(v + at(axis, forms[form]))


def narrow(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    n = d.extent(v, axis)
    if d.chance(0.5):
        return d.tensor(f"{v}.narrow({axis}, 0, min({n}, {d.one_of(BOUNDS)}))")
    a = d.size(f"{n} // {d.one_of(FACTORS)}")
    return d.tensor(f"{v}.narrow({axis}, {a}, {n} - {a})")


def select(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) > 2)
    axis = d.axis(v, 0.6)
    if d.chance(0.3):
        return d.tensor(f"{v}.select({axis}, {d.extent(v, axis)} // 2)")
    return d.tensor(v + at(axis, d.one_of(("0", "-1", "-1", "1", "-2"))))


def piece(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    index = d.one_of((0, 0, -1, -1, 1))
    k = d.one_of((2, 2, 3, 4))
    if d.chance(0.5):
        return d.tensor(f"{v}.chunk({k}, {axis})[{index}]")
    if d.chance(0.3):
        return d.tensor(f"{v}.tensor_split({k}, {axis})[{index}]")
    size = str(d.one_of(BOUNDS)) if d.chance(0.7) else f"max(1, {d.extent(v, axis)} // {k})"
    return d.tensor(f"{v}.split({size}, {axis})[{index}]")


def pieces_joined(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    k = d.one_of((2, 2, 3))
    return d.tensor(f"torch.cat({v}.chunk({k}, {axis})[::-1], {axis})")


def cat(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)

    def has_same_other_axes(other: str) -> bool:
        return d.rank(other) == d.rank(v) and all(
            d.extents(other, a) == d.extents(v, a) for a in range(d.rank(v)) if a != axis
        )

    w = d.one_of(d.tensors(has_same_other_axes))
    return d.tensor(f"torch.cat([{v}, {w}], {axis})")


def stack(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) < 4)
    w = d.one_of(d.tensors(same_shape(d, v)))
    return d.tensor(f"torch.stack([{v}, {w}], {d.randint(0, d.rank(v))})")


def same_shape(d: Draft, v: str) -> Callable[[str], bool]:
    target_shapes = [tuple(value.shape) for value in d.values(v)]
    return lambda other: [tuple(value.shape) for value in d.values(other)] == target_shapes


def in_the_middle(d: Draft) -> str:
    """Return a crop around the middle."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    n, c = d.extent(v, axis), d.one_of(SMALL)
    a = d.size(f"({n} - {c}) // 2") if d.chance(0.5) else d.size(f"max({n} - {c}, 0) // 2")
    return d.tensor(v + at(axis, f"{a}:{a} + {c}"))


def pads(d: Draft, v: str, axis: int, before: str, after: str) -> str:
    """Return the arguments of F.pad for one axis."""
    return f"({'0, 0, ' * (d.rank(v) - 1 - axis)}{before}, {after})"


def pad(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    before, after = str(d.randint(-3, 4)), str(d.randint(-3, 6))
    value = d.one_of(("", "", ", value=0.5"))
    return d.tensor(f"F.pad({v}, {pads(d, v, axis, before, after)}{value})")


def pad_by_size(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v, 1.0)
    n, k, c = d.extent(v, axis), d.one_of(FACTORS), d.one_of(BOUNDS)
    amount = d.one_of((f"-{n} % {k}", f"-{n} % {k}", f"({k} - {n} % {k}) % {k}", f"max(0, {c} - {n})", f"{c} - {n}"))
    a = d.size(amount) if d.chance(0.8) else computed(d)
    before, after = d.one_of((("0", a), ("0", a), (a, "0")))
    return d.tensor(f"F.pad({v}, {pads(d, v, axis, before, after)})")


def pad_mirrored(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3))
    mode = d.one_of(("reflect", "replicate", "replicate", "circular"))
    return d.tensor(f'F.pad({v}, ({d.randint(0, 2)}, {d.randint(0, 2)}), mode="{mode}")')


def differences(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    return d.tensor(f"{v}{at(axis, '1:')} - {v}{at(axis, ':-1')}" if d.chance(0.5) else f"{v}.diff(dim={axis})")


def with_neighbour(d: Draft) -> str:
    """Combine each step with the one before it."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    shifted = f"F.pad({v}, {pads(d, v, axis, '1', '0')}){at(axis, ':-1')}"
    return d.tensor(f"{v} - {shifted}" if d.chance(0.5) else f"torch.cat([{v}, {shifted}], {d.rank(v) - 1})")


def written_part(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v, 1.0)
    end = part_of(d, d.extent(v, axis))
    part = v + at(axis, f":{end}")
    return d.tensor(f"torch.slice_scatter({v}, {part} * 0.5, {axis}, 0, {end})")


def decided(d: Draft) -> str:
    """Add a decision of the model's Python on a size."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    n, c = d.extent(v, axis), d.one_of(BOUNDS)
    missing = pads(d, v, axis, "0", f"{c} - {n}")
    return d.tensor(
        d.one_of(
            (
                f"{v}{at(axis, f':{c}')} if {n} > {c} else {v}",
                f"F.pad({v}, {missing}) if {n} < {c} else {v}{at(axis, f':{c}')}",
                f"F.pad({v}, {pads(d, v, axis, '0', '1')}) if {n} % 2 else {v}",
                f"{v} * 0.5 if {n} > {c} else {v} + 1",
                f"{v} if {n} == 1 else {v} - {v}.mean({axis}, keepdim=True)",
                f"{v}.squeeze({axis}) if {n} == 1 else {v}.mean({axis})",
            )
        )
    )


def to_length(d: Draft) -> str:
    """Cut a tensor to some size, if it is longer."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    return d.tensor(v + at(axis, f":{any_size(d)}"))


OPERATORS: dict[Callable[[Draft], str], float] = {
    constant_slice: 6,
    last_steps: 5,
    every_few: 2.5,
    computed_slice: 8,
    narrow: 2.5,
    select: 1.5,
    piece: 4,
    pieces_joined: 1,
    cat: 5,
    stack: 1,
    in_the_middle: 1.5,
    pad: 4,
    pad_by_size: 5,
    pad_mirrored: 1.5,
    differences: 1.5,
    with_neighbour: 1,
    written_part: 1.5,
    decided: 0.7,
    to_length: 1.5,
}
