"""Steps that use positions: indices, masks, embeddings, tables."""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft
from conformance.lab.fuzz.operators.sizes import BOUNDS, SMALL, any_size, computed, never_negative
from conformance.lab.fuzz.operators.slices import at


def indices(d: Draft, n: str) -> str:
    """Return the text of indices into an axis of `n` elements."""
    k = d.one_of(SMALL)
    return str(
        d.rng.choices(
            [
                f"torch.arange({n})",
                f"torch.arange(0, {n}, {d.one_of((2, 3))})",
                f"torch.arange({n}).flip(0)",
                f"torch.arange({n} - 1, -1, -1)",
                f"torch.arange({n}) // {k}",
                f"torch.arange({n}) % {k} % {n}",
                f"(torch.arange({n}) - {k}).clamp(min=0)",
                f"(torch.arange({n}) + {k}).clamp(max={n} - 1)",
                f"torch.arange(min({n}, {d.one_of(BOUNDS)}))",
                f"(torch.arange({n}) + {k}) % {n}",
            ],
            weights=[2, 3, 2, 2, 2, 1, 2, 2, 3, 2],
        )[0]
    )


def index_select(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v, 1.0)
    index = indices(d, d.extent(v, axis))
    if d.chance(0.5):
        return d.tensor(f"{v}.index_select({axis}, {index})")
    return d.tensor(v + at(axis, index))


def gather(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3))
    axis = d.axis(v, 1.0)
    index = indices(d, d.extent(v, axis))
    shape = ["-1" if a == axis else "1" for a in range(d.rank(v))]
    expanded = ["-1" if a == axis else d.extent(v, a) for a in range(d.rank(v))]
    where = d.tensor(f"({index}).reshape({', '.join(shape)}).expand({', '.join(expanded)})")
    return d.tensor(f"{v}.gather({axis}, {where})")


def one_place(d: Draft) -> str:
    """Return the step whose place is computed as a tensor."""
    v = d.pick(lambda name: d.rank(name) > 1)
    axis = d.axis(v, 1.0)
    n = d.extent(v, axis)
    index = d.one_of((f"torch.arange({n})[-1]", f"torch.arange({n})[0]", f"torch.arange({n}).amax() // 2"))
    return d.tensor(v + at(axis, index))


def mask_by_position(d: Draft) -> str:
    """Return a mask over one axis of a tensor, and what it hides."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    n = d.extent(v, axis)
    bound = d.one_of((computed(d), str(d.one_of(BOUNDS)), f"{n} - {d.one_of(SMALL)}", f"{n} // 2"))
    relation = d.one_of(("<", "<=", ">", ">=", "!="))
    text = f"torch.arange({n}) {relation} {bound}" if d.chance(0.8) else f"torch.arange({n}) % {d.one_of((2, 3))} == 0"
    shape = f"[:{', None' * (d.rank(v) - 1 - axis)}]" if axis < d.rank(v) - 1 else ""
    mask = d.tensor(f"({text}){shape}")
    return hidden(d, v, mask)


def hidden(d: Draft, v: str, mask: str) -> str:
    value = d.one_of((0.0, 0.5, -1.0))
    return d.tensor(
        d.one_of(
            (
                f"{v}.masked_fill({mask}, {value})",
                f"{v} * {mask}",
                f"torch.where({mask}, {v}, {value})",
                f"torch.where({mask}, {v}, {v} * 0.5 - 1)",
                f"{v} * (~{mask}).float()",
                f"{v} + {mask}.to({v}.dtype)",
                f"{v}.masked_fill({mask}, -1e4).softmax(-1)",
            )
        )
    )


def mask_of_pairs(d: Draft) -> str:
    """Return a mask over the last two axes: causal, a band, everything."""
    v = d.pick(lambda name: d.rank(name) > 1)
    n, m = d.extent(v, -2), d.extent(v, -1)
    k = d.randint(-3, 3)
    text = d.one_of(
        (
            f"torch.ones({n}, {m}, dtype=torch.bool).tril({k})",
            f"torch.ones({n}, {m}).triu({k}) > 0",
            f"torch.arange({n})[:, None] >= torch.arange({m})[None]",
            f"(torch.arange({n})[:, None] - torch.arange({m})).abs() <= {abs(k)}",
            f"torch.arange({m})[None] <= torch.arange({n})[:, None] + ({m} - {n})",
        )
    )
    return hidden(d, v, d.tensor(text))


def triangle(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) > 1)
    return d.tensor(f"{v}.{d.one_of(('tril', 'triu'))}({d.randint(-3, 4)})")


def embedding(d: Draft) -> str:
    """Return a table of positions, looked up at computed ones."""
    length, width = d.one_of((8, 16, 40, 64)), d.one_of((4, 6, 8))
    n = never_negative(d, any_size(d))
    suffix = d.one_of((f"% {length}", f".clamp(max={length - 1})", f"// {d.one_of((2, 3))} % {length}"))
    text = f"torch.arange({n}) {suffix}" if suffix[0] != "." else f"torch.arange({n}){suffix}"
    return d.tensor(f"self.LAYER({text})", f"nn.Embedding({length}, {width})")


def table(d: Draft) -> str:
    """Return the first rows of a table, as positional embeddings are added."""
    v = d.pick(lambda name: d.rank(name) > 1 and d.fixed(name, -1) is not None)
    axis = d.rank(v) - 2
    n, width = d.extent(v, axis), d.fixed(v, -1)
    length = d.one_of((40, 64))
    rows = d.one_of((f"[:{n}]", f"[torch.arange({n}) % {length}]", f"[:min({n}, {d.one_of(BOUNDS)})]"))
    return d.tensor(f"{v} + self.LAYER.weight{rows}", f"nn.Embedding({length}, {width})")


def positions(d: Draft) -> str:
    """Return positions scaled to order one, over an axis of some tensor."""
    n = never_negative(d, any_size(d) if d.chance(0.6) else computed(d))
    return d.tensor(
        d.one_of(
            (
                f"torch.arange({n}) * 0.125",
                f"torch.arange({n}, dtype=torch.float32).sin()",
                f"torch.linspace(-1, 1, {n})",
                f"torch.arange({n}) / max({n}, 1)",
                f"torch.ones({n}) * 0.5",
                f"torch.zeros({n}, {d.one_of((4, 6, 8))}) + 0.25",
                f"torch.arange({d.one_of(SMALL)}, {d.one_of(SMALL)} + {n}) * 0.0625",
            )
        )
    )


def relative(d: Draft) -> str:
    """Clipped distances between positions, looked up in a table."""
    v = d.pick(lambda name: d.rank(name) > 1)
    n, m = d.extent(v, -2), d.extent(v, -1)
    reach = d.one_of((2, 3, 5))
    distance = f"(torch.arange({n})[:, None] - torch.arange({m})[None]).clamp(-{reach}, {reach}) + {reach}"
    bias = d.tensor(f"self.LAYER({distance}).squeeze(-1)", f"nn.Embedding({2 * reach + 1}, 1)")
    return d.tensor(f"{v} + {bias}")


OPERATORS: dict[Callable[[Draft], str], float] = {
    index_select: 3.5,
    gather: 1.5,
    one_place: 0.4,
    mask_by_position: 4,
    mask_of_pairs: 2,
    triangle: 1,
    embedding: 1.5,
    table: 1.5,
    positions: 1.5,
    relative: 0.7,
}
