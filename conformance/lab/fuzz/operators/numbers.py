"""Arithmetic: between tensors, with scalars computed from sizes, reductions, sums over positions, matrix products."""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft
from conformance.lab.fuzz.operators.sizes import BOUNDS, any_size, computed


def unary(d: Draft) -> str:
    v = d.pick()
    return d.tensor(
        d.one_of(
            (
                f"torch.tanh({v})",
                f"torch.sigmoid({v})",
                f"torch.relu({v})",
                f"F.gelu({v})",
                f"F.silu({v})",
                f"{v}.abs()",
                f"torch.sin({v})",
                f"(-{v}.abs()).exp()",
                f"F.leaky_relu({v}, 0.1)",
                f"{v}.clamp(-1.5, 2)",
                f"(1 + {v}.square()).log()",
                f"{v} * 0.5",
                f"1 - {v}",
            )
        )
    )


def binary(d: Draft) -> str:
    v = d.pick()

    def fits(other: str) -> bool:
        if other == v:
            return False
        last = min(d.rank(v), d.rank(other))
        pairs = ((d.extents(v, -a), d.extents(other, -a)) for a in range(1, last + 1))
        return all(mine == theirs or set(mine) == {1} or set(theirs) == {1} for mine, theirs in pairs)

    w = d.one_of(d.tensors(fits))
    if d.chance(0.3):
        v, w = w, v
    return d.tensor(
        d.rng.choices(
            [f"{v} + {w}", f"{v} - {w}", f"{v} * {w}", f"{v} / (1 + {w}.abs())", f"torch.maximum({v}, {w})"],
            weights=[5, 3, 3, 1, 1],
        )[0]
    )


def outer(d: Draft) -> str:
    """Combine all pairs of elements along one axis."""
    v = d.pick(lambda name: d.rank(name) in (1, 2, 3))
    return d.tensor(f"{v}.unsqueeze(1) - {v}.unsqueeze({0 if d.rank(v) == 1 else 2})")


def with_size(d: Draft) -> str:
    """Return a number computed from sizes."""
    v = d.pick()
    n = any_size(d) if d.chance(0.6) else computed(d)
    c = d.one_of(BOUNDS)
    return d.tensor(
        d.one_of(
            (
                f"{v} / {n}",
                f"{v} * {n} / {c}",
                f"{v} / math.sqrt({n})",
                f"{v} * {n} ** -0.5",
                f"{v} / max({n}, {c})",
                f"{v} * (min({n}, {c}) / {c})",
                f"{v} + {n} % {d.one_of((2, 3))}",
                f"{v} + 1 / (1 + {n})",
                f"{v} - 0.25 * ({n} // {d.one_of((2, 4, 8))})",
                f"{v} + torch.tensor({n} * 0.125)",
            )
        )
    )


def softmax(d: Draft) -> str:
    v = d.pick()
    return d.tensor(f"{v}.{d.one_of(('softmax', 'softmax', 'log_softmax'))}({d.axis(v)})")


def cumulative(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    return d.tensor(f"{v}.cumsum({axis}) / {d.one_of((2, 4, 8))}")


def reduction(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) > 1)
    axis = d.axis(v)
    keep = ", keepdim=True" if d.chance(0.5) else ""
    return d.tensor(
        d.one_of(
            (
                f"{v}.mean({axis}{keep})",
                f"{v}.mean({axis}{keep})",
                f"{v}.sum({axis}{keep}) * 0.25",
                f"{v}.amax({axis}{keep})",
                f"{v}.amin({axis}{keep})",
                f"{v}.max({axis}{keep})[0]",
                f"{v}.logsumexp({axis}{keep})",
                f"{v}.var({axis}, correction=0{keep})",
                f"{v}.norm(dim={axis}{keep})",
            )
        )
    )


def centred(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    return d.tensor(
        d.one_of(
            (
                f"{v} - {v}.mean({axis}, keepdim=True)",
                f"{v} - {v}.mean()",
                f"{v} / (1 + {v}.abs().amax({axis}, keepdim=True))",
                f"F.normalize({v} + 0.1, dim={axis})",
                f"{v} * torch.sigmoid({v}.mean({axis}, keepdim=True))",
            )
        )
    )


def product_with_itself(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3, 4))
    return d.tensor(
        d.one_of((f"{v} @ {v}.transpose(-1, -2) * 0.2", f"{v}.transpose(-1, -2) @ {v} * 0.1", f"({v} @ {v}.mT).tanh()"))
    )


def matmul(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3))

    def fits(other: str) -> bool:
        if d.rank(other) not in (2, 3) or d.extents(other, -2) != d.extents(v, -1):
            return False
        return d.rank(other) != 3 or d.rank(v) != 3 or d.extents(other, 0) == d.extents(v, 0)

    w = d.one_of(d.tensors(fits))
    call = "torch.bmm" if d.rank(v) == d.rank(w) == 3 and d.chance(0.5) else "torch.matmul"
    return d.tensor(f"{call}({v}, {w}) * 0.3")


def einsum(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3, 4))
    rank = d.rank(v)
    letters = "bhtc"[-rank:] if rank > 2 else "tc"
    lead, t, c = letters[:-2], letters[-2], letters[-1]
    w = d.one_of(
        d.tensors(
            lambda o: (
                d.rank(o) == rank and all(d.extents(o, a) == d.extents(v, a) for a in range(rank) if a != rank - 2)
            )
        )
    )
    text = d.one_of(
        (
            f'torch.einsum("{lead}t{c},{lead}s{c}->{lead}ts", {v}, {w}) * 0.2',
            f'torch.einsum("{lead}{t}{c}->{lead}{c}", {v}) * 0.2',
            f'torch.einsum("{lead}{t}{c},{lead}s{c}->{lead}{t}", {v}, {w}) * 0.1',
            f'torch.einsum("{letters},{letters}->{c}{t}", {v}, {v}) * 0.2',
        )
    )
    return d.tensor(text)


def sorted_values(d: Draft) -> str:
    v = d.pick()
    axis = d.axis(v)
    return d.tensor(d.one_of((f"{v}.sort({axis})[0]", f"{v}.topk(1, {axis})[0]", f"{v}.cummax({axis})[0]")))


OPERATORS: dict[Callable[[Draft], str], float] = {
    unary: 6,
    binary: 9,
    outer: 1,
    with_size: 4,
    softmax: 2,
    cumulative: 2,
    reduction: 3,
    centred: 2.5,
    product_with_itself: 1.5,
    matmul: 2.5,
    einsum: 1.5,
    sorted_values: 0.4,
}
