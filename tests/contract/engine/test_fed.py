"""Batches that take what the batch before them gave, in one job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from t2n_core.engine.tract.engine import TractEngine

Write = Callable[[str], Path]
Engines = Callable[[str], TractEngine]

RNG = np.random.default_rng(6)
SUM = (
    "extension tract_symbol P;\nextension tract_symbol S;\n"
    "graph g(x, past) -> (y, next) { x = external<scalar>(shape = [1, S, 2]);"
    " past = external<scalar>(shape = [1, P, 2]); z = x * 2.0;"
    " next = concat([past, z], axis = 1); y = sum_reduce(next, axes = [1]); }"
)
"""Twice the sum of all that came, by a cache that grows."""
PAIRS = [(1, 1)]
EMPTY = np.zeros((1, 0, 2), np.float32)


def rows(count: int) -> np.ndarray:
    return RNG.standard_normal((1, count, 2)).astype(np.float32)


def test_a_fed_batch_takes_the_outputs_of_the_one_before(
    version: str, tract_engine: Engines, write_graph: Write
) -> None:
    first, second, third = rows(3), rows(1), rows(4)
    batches = [[first, EMPTY], [second, EMPTY], [third, EMPTY], [third, EMPTY]]
    reply = tract_engine(version).run(write_graph(SUM), batches, fed=[(1, PAIRS), (2, PAIRS)])
    assert reply.status == "ok", reply.message
    all_rows = np.concatenate([first, second, third], 1)
    for count, outputs in zip((3, 4, 8), reply.outputs, strict=False):
        np.testing.assert_array_equal(outputs[1], 2 * all_rows[:, :count])
        np.testing.assert_allclose(outputs[0], 2 * all_rows[:, :count].sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(reply.outputs[3][1], 2 * third)


def test_after_a_refused_batch_there_is_nothing_to_take(
    version: str, tract_engine: Engines, write_graph: Write
) -> None:
    batches = [[rows(3)[..., :1], EMPTY], [rows(2), EMPTY], [rows(2), EMPTY]]
    reply = tract_engine(version).run(write_graph(SUM), batches, fed=[(1, PAIRS)], keep_going=True)
    assert sorted(reply.refused) == [0, 1]
    assert "output 1 of the previous batch" in reply.refused[1]
    assert reply.outputs[2]
