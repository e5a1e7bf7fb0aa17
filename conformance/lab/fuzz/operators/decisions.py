"""Decisions of a model's Python on sizes, and quotients that choose an element."""

from __future__ import annotations

from conformance.lab.fuzz.draft import Draft, Rejected
from conformance.lab.fuzz.operators.sizes import BOUNDS, SMALL, any_size
from conformance.lab.fuzz.operators.slices import at
from conformance.lab.fuzz.program import INDICES, LENGTHS, MASK

_DIVISORS = (3, 5, 6, 7, 10, 11, 13, 41, 47, 49)
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")


def condition(d: Draft) -> str:
    """Return a condition on one size, on two, or on the layout of a tensor."""
    n = any_size(d)
    m = next((size for size in (any_size(d) for _ in range(3)) if size != n), n)
    k, c, r = d.one_of((2, 3, 4, 5, 8)), d.one_of(BOUNDS), d.one_of(_RELATIONS)
    v = d.pick(kind="fib")
    here, there = d.one_of(d.values(n)), d.one_of(d.values(m))
    text = d.rng.choices(
        [
            f"{n} {r} {c}",
            f"{n} % {k} == {d.randint(0, k - 1)}",
            f"{n} * {m} {r} {here * there}",
            f"{n} + {m} {r} {here + there}",
            f"{n} - {m} == {here - there}",
            f"{n} == {m}",
            f"{n} ** 2 {r} {here * here}",
            f"{n} > {c} and {m} < {d.one_of(BOUNDS)}",
            f"{n} == {m} and {n} > {c}",
            f"{n} < {c} or {m} % {k} == 0",
            f"bool({n} // {k})",
            f"{n} in (1, {c}, 16)",
            f"({n} & ({n} - 1)) == 0",
            f"max({n}, {m}) {r} {c}",
            f"{v}.numel() {r} {d.one_of((4, 8, 16, 32, 40, 64, 100))}",
            f"{v}.is_contiguous()",
            f"{v}.shape[0] == 1",
            f"{v}.squeeze(0).dim() == {d.rank(v)}",
            f"len({v}.split({c}, {d.axis(v)})) > 1",
            f"{n} / {k} {r} {d.one_of((0.5, 1.5, 2.0, 3.5))}",
            f"math.ceil({n} / {k}) == {d.one_of((1, 2, 3, 4))}",
            f"not {n} // {k} % 2",
        ],
        weights=[6, 4, 2, 2, 1, 3, 1, 2, 2, 1, 1, 1, 1, 1, 2, 1.5, 1.5, 1, 1, 1, 1, 1],
    )[0]
    return d.condition(text)


def branch(d: Draft) -> str:
    """Compute one of two things."""
    v = d.pick()
    axis = d.axis(v)
    choices = [
        v,
        f"{v} * 2",
        f"{v} + 1",
        f"torch.relu({v})",
        f"{v} - {v}.mean({axis}, keepdim=True)",
        f"{v}.flip({axis})",
        f"{v}.cumsum({axis})",
        f"{v}{at(axis, ':3')}",
        f"{v}{at(axis, '1:')}",
        f"torch.cat([{v}, {v}], {axis})",
        f"{v}.mean({axis})",
        f"{v}.contiguous() * 0.5",
    ]
    first, other = d.rng.sample(choices, 2)
    return d.tensor(f"{first} if {condition(d)} else {other}")


def scaled(d: Draft) -> str:
    """Multiply by a number that Python computes from a size."""
    v, n, k = d.pick(), any_size(d), d.one_of((2, 3, 4, 7))
    number = d.one_of(
        (
            f"(0.5 if {condition(d)} else 2.0)",
            f"{n} ** -0.5",
            f"(1 / max({n}, {k}))",
            f"math.sqrt({n})",
            f"(1.0 if {n} > {k} else {n} / {k})",
            f"math.log({n} + 1)",
            f"({n} // {k} + 1)",
            f"({n} % {k})",
            f"int({n} / {k} + 0.5)",
            f"math.ceil({n} / {k})",
            f"round({n} / {k})",
        )
    )
    return d.tensor(f"{v} * {number}")


def chosen_size(d: Draft) -> str:
    """Keep a part whose length a decision chooses."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    n = d.extent(v, axis)
    k = d.one_of((2, 3, 4))
    stop = d.one_of(
        (
            f"{n} // {k} if {condition(d)} else {n}",
            f"math.ceil({n} / {k})",
            f"int({n} * 0.{d.randint(1, 9)})",
            f"max(int({n} / {k}), 1)",
            f"2 ** (({n}).bit_length() - 1)",
            f"min({n}, {d.one_of(BOUNDS)}) if {condition(d)} else 1",
        )
    )
    return d.tensor(v + at(axis, f":{d.size(stop)}"))


def loop(d: Draft) -> str:
    """Run a loop whose number of rounds a size bounds."""
    v = d.pick()
    axis = d.axis(v, 1.0)
    n, c = d.extent(v, axis), d.one_of((2, 3, 4))
    if d.rank(v) < 2:
        raise Rejected
    return d.tensor(
        d.rng.choices(
            [
                f"torch.stack([{v}.select({axis}, i) for i in range(min({n}, {c}))]).sum(0)",
                f"torch.cat([one.flip({axis}) for one in {v}.split({d.one_of((4, 8, 16))}, {axis})], {axis})",
                f"torch.cat([one * 2 for one in {v}.chunk({c}, {axis})], {axis})",
                f"torch.stack([one.mean({axis}) for one in {v}.tensor_split({c}, {axis})])",
                f"torch.cat([{v}.narrow({axis}, i, 1) for i in range(0, {n}, {d.one_of((8, 16, 32))})], {axis})",
                f"sum([{v}.roll(i, {axis}) for i in range(1 + ({n} > {c}))])",
            ],
            weights=[3, 2, 2, 1, 1, 2],
        )[0]
    )


def quotient(d: Draft) -> str:
    """Divide positions or lengths by a number and round, compare, or choose by what comes out."""
    integer_vectors = d.tensors(lambda name: d.rank(name) == 1 and bool(d.moving(name)), "i")
    n = any_size(d)
    of = d.one_of(integer_vectors) if integer_vectors and d.chance(0.6) else f"torch.arange({n})"
    k = d.one_of(_DIVISORS) if d.chance(0.7) else n
    return d.tensor(
        d.one_of(
            (
                f"torch.ceil({of} / {k})",
                f"torch.floor({of} / {k})",
                f"({of} / {k}).round()",
                f"({of} / {k}).long().float()",
                f"({of} // {k}).float()",
                f"({of} / {k} * {d.one_of(SMALL)}).long().float()",
                f"({of} / {k} == ({of} / {k}).floor()).float()",
                f"({of} / {k} < 0.{d.randint(1, 9)}).float()",
                f"({of} * {1 / d.one_of(_DIVISORS)!r}).floor()",
                f"torch.div({of}, {k}, rounding_mode='floor').float()",
                f"torch.log2({of} + 1.0).floor()",
                f"({of}.float() / {of}.float().amax().clamp(min=1) * 10).floor()",
            )
        )
    )


def masked(d: Draft) -> str:
    """Use an input of lengths, indices or truth values as models do."""
    names = [spec for spec in d.inputs if spec.kind in (LENGTHS, INDICES, MASK)]
    chosen = d.one_of(names)
    if chosen.kind == MASK:
        v = d.pick(lambda name: d.rank(name) > 2 and _equal(d, name, chosen.name))
        return d.tensor(
            d.one_of(
                (
                    f"{v}.masked_fill({chosen.name}[..., None], 0.0)",
                    f"{v} * ({chosen.name}.float().mean(1) == 1)[:, None, None]",
                    f"({v} * {chosen.name}[..., None]).sum(1) / {chosen.name}.sum(1, keepdim=True).clamp(min=1)",
                )
            )
        )
    if chosen.kind == INDICES:
        v = d.pick(lambda name: any(_same(d, name, a, chosen.of) for a in range(d.rank(name))))
        axis = next(a for a in range(d.rank(v)) if _same(d, v, a, chosen.of))
        return d.tensor(f"{v}.index_select({axis}, {chosen.name})")
    v = d.pick(lambda name: d.rank(name) > 1 and _same(d, name, 1, chosen.of) and _equal(d, name, chosen.name))
    mask = f"(torch.arange({d.extent(v, 1)}) < {chosen.name}[:, None])"
    mask = f"{mask}{'[..., None]' * (d.rank(v) - 2)}"
    return d.tensor(d.one_of((f"{v} * {mask}", f"{v}.masked_fill(~{mask}, -1.0)", f"({v} * {mask}).sum(1)")))


def _same(d: Draft, name: str, axis: int, symbol: str) -> bool:
    return d.extents(name, axis) == tuple(run.sizes[symbol] for run in d.living)


def _equal(d: Draft, name: str, other: str) -> bool:
    """Return whether a tensor's first axes equal another's axes."""
    return all(d.extents(name, axis) == d.extents(other, axis) for axis in range(d.rank(other)))


OPERATORS = {branch: 10.0, scaled: 3.0, chosen_size: 2.0, loop: 3.0, quotient: 3.0, masked: 3.0}
