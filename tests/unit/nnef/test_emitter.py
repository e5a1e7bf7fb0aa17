"""The emitter: its attributes are operators of the target, and it writes no more statements than a value needs."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import LowerError
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.spec import spec_for
from tests.each import check_each
from tests.releases import NEWEST

BY_AXES = {
    "argmax_reduce": lambda g, x, n: g.argmax_reduce(x, axes=[n - 1]),
    "concat": lambda g, x, n: g.concat([x, x], axis=n - 1),
    "concat by place": lambda g, x, n: g.one("concat", [x, x], n - 2),
    "gather": lambda g, x, n: g.pick(x, g.constant(np.array([1, 0])), n - 1),
    "mean": lambda g, x, n: g.mean_of(x, [n - 2]),
    "permute": lambda g, x, n: g.permute(x, [0, n - 1, n - 2]),
    "scatter": lambda g, x, n: g.tract_core_scatter_elements(
        x, indices=g.constant(np.zeros((2, 3, 1), np.int64)), updates=x, axis=n - 3
    ),
    "slice": lambda g, x, n: g.slice(x, axes=[n - 2], begin=[1], end=[2]),
    "softmax": lambda g, x, n: g.softmax(x, axes=[n - 2]),
    "squeeze": lambda g, x, n: g.squeeze(x, axes=[n - 1]),
    "stack": lambda g, x, n: g.stack([x, x], axis=n or -1),
    "sum": lambda g, x, n: g.sum_reduce(x, axes=[n - 1, n - 2]),
    "take": lambda g, x, n: g.take(x, n - 2, 1, 3),
    "transpose": lambda g, x, n: g.transpose(x, axes=[n - 1, n - 2, 0]),
    "unsqueeze": lambda g, x, n: g.unsqueeze(x, axes=[n or -1]),
}
"""Operations of a tensor of rank 3 by axes from its end, or from its beginning with `n` of 3."""


@pytest.mark.parametrize(("target", "version"), [("tract", NEWEST), ("khronos", "1.0.5")])
def test_a_misspelt_attribute_is_an_error(target: str, version: str) -> None:
    g = emitter_for(spec_for(target, version))
    assert callable(g.matmul)
    with pytest.raises(AttributeError, match=r"has no attribute or operator `matmull`; did you mean `matmul`"):
        _ = g.matmull
    with pytest.raises(AttributeError, match="has no attribute or operator `rows_overun`"):
        _ = g.rows_overun


def test_transposes_that_follow_each_other_are_one() -> None:
    g = emitter_for(spec_for("tract", NEWEST))
    x = g.external("x", (2, 3, 5), FLOAT32)
    turned = g.permute(x, [1, 2, 0])
    assert g.permute(turned, [2, 0, 1]) is x
    swapped = g.permute(turned, [1, 0, 2])
    assert swapped.shape == (5, 3, 2)
    assert swapped.producer is not None
    assert list(swapped.producer.inputs()) == [x]
    assert swapped.producer.arguments["axes"] == [2, 1, 0]


def test_a_label_is_one_variable_and_of_one_shape() -> None:
    g = emitter_for(spec_for("tract", NEWEST))
    row = g.variable("row", ArrayWeight(np.zeros(3, np.float32)))
    assert g.variable("row", ArrayWeight(np.zeros(3, np.float32))) is row
    with pytest.raises(LowerError, match="two variables have the label row"):
        g.variable("row", ArrayWeight(np.zeros((1, 3), np.float32)))


@pytest.mark.parametrize(("target", "version"), [("tract", "0.19.15"), ("tract", NEWEST), ("khronos", "1.0.5")])
def test_negative_axes_count_from_the_end(target: str, version: str) -> None:
    def written(name: str, rank: int) -> tuple[tuple[object, ...], list[str]]:
        g = emitter_for(spec_for(target, version))
        result = BY_AXES[name](g, g.external("x", (2, 3, 1), FLOAT32), rank)
        return result.shape, [f"{operation.name} {operation.arguments}" for operation in g.graph.operations]

    def check(name: str) -> None:
        assert written(name, 0) == written(name, 3)

    check_each(BY_AXES, check)


@pytest.mark.parametrize(
    ("axes", "message"),
    [([3], "`sum_reduce` has no axis 3: its tensor has the rank 3"), ([-4], "no axis -4"), ([1, -2], "an axis twice")],
)
def test_axes_that_a_tensor_does_not_have_are_refused(axes: list[int], message: str) -> None:
    for target, version in (("tract", NEWEST), ("khronos", "1.0.5")):
        g = emitter_for(spec_for(target, version))
        with pytest.raises(LowerError, match=message):
            g.sum_reduce(g.external("x", (2, 3, 1), FLOAT32), axes=axes)
