"""Products with a gate are set to zero where the gate has closed, and no other products are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from t2n_core.nnef.graph import FLOAT16, FLOAT32, FLOAT64, Value
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter
from t2n_core.op import saturation

Two = Callable[[TractEmitter, Value, Value], tuple[Value, Value]]

GATES: dict[str, Two] = {
    "of another value": lambda g, x, y: (x, g.sigmoid(y)),
    "of the factor": lambda g, x, y: (x, g.sigmoid(x)),
    "rounded to float16": lambda g, x, y: (g.cast(x, FLOAT16), g.cast(g.sigmoid(y), FLOAT16)),
}
NO_GATES: dict[str, Two] = {
    "a number where a comparison holds": lambda g, x, y: (x, g.select(g.eq(y, y), 0.5, y)),
    "no sigmoid": lambda g, x, y: (x, g.tanh(y)),
    "a bounded factor": lambda g, x, y: (g.tanh(x), g.sigmoid(y)),
    "a gate of another gate": lambda g, x, y: (g.sigmoid(x), g.sigmoid(y)),
}


CLOSED = {
    "0.19.2": ["sigmoid", "add", "max", "mul"],
    "0.21.19": ["sigmoid", "sub", "max", "mul"],
    "0.23.6": ["sigmoid", "ge", "tract_core_cast", "mul", "mul"],
    "0.23.7": ["sigmoid", "neg", "exp", "add", "recip", "mul"],
}
"""How each release closes a gate; what `sigmoid` computes is left out of the graph where nothing reads it."""


def emitter(version: str = "0.23.6") -> tuple[TractEmitter, Value, Value]:
    g = TractEmitter(spec_for("tract", version))
    return g, g.external("x", (2, 3), FLOAT32), g.external("y", (2, 3), FLOAT32)


def names_of(g: TractEmitter) -> list[str]:
    return [operation.name for operation in g.graph.operations]


@pytest.mark.parametrize("name", GATES)
def test_a_product_with_a_sigmoid_compares_its_input(name: str) -> None:
    g, x, y = emitter()
    factor, gate = GATES[name](g, x, y)
    product = saturation.closing_product(g, factor, gate)
    assert product is not None
    assert product.dtype == factor.dtype
    assert names_of(g).count("ge") == 1


@pytest.mark.parametrize("name", NO_GATES)
def test_other_products_stay(name: str) -> None:
    g, x, y = emitter()
    assert saturation.closing_product(g, *NO_GATES[name](g, x, y)) is None
    assert "ge" not in names_of(g)


@pytest.mark.parametrize("version", CLOSED)
def test_a_silu_ends_at_zero(version: str) -> None:
    g, x, _ = emitter(version)
    saturation.closing_sigmoid_product(g, x, x)
    assert names_of(g)[2:] == CLOSED[version]


def test_float64_has_no_kernel_that_ends() -> None:
    g, _, _ = emitter()
    x = g.external("z", (2, 3), FLOAT64)
    saturation.closing_sigmoid_product(g, x, x)
    assert "ge" not in names_of(g)


@pytest.mark.parametrize(("term", "closes"), [(1.0, True), (1, True), (2.0, False)])
@pytest.mark.parametrize("reverse", [False, True])
def test_one_plus_a_tanh_closes(term: float, closes: bool, reverse: bool) -> None:
    g, x, _ = emitter()
    gate = g.tanh(x)
    terms = (term, gate) if reverse else (gate, term)
    saturation.closing_sum(g, g.add(*terms), *terms)
    assert ("ge" in names_of(g)) == closes
