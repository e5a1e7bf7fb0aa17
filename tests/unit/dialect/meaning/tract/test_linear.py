"""Sums of products, by an expression and by six axes."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.linear import einsum, legacy_axes, matmul, onnx_einsum
from t2n_core.errors import SpecError

A, B = np.asarray([[1.0, 2.0], [3.0, 4.0]]), np.asarray([[5.0, 6.0], [7.0, 8.0]])


def test_einsum() -> None:
    assert einsum([A, B], "mk,kn->mn", "f32").tolist() == [[19.0, 22.0], [43.0, 50.0]]
    assert einsum([A], "ii->i", "f32").tolist() == [1.0, 4.0]
    assert einsum([A], "ij->", "f32").tolist() == 10.0
    assert einsum([A, B], "mk, kn -> mxn", "f32").shape == (2, 1, 2)
    assert onnx_einsum([A, B], "mk,nk->mn").tolist() == [[17.0, 23.0], [39.0, 53.0]]


def test_an_axis_of_extent_one_is_repeated() -> None:
    assert einsum([np.asarray([[2.0]]), B], "mk,kn->mn", "f32").tolist() == [[24.0, 28.0]]


@pytest.mark.parametrize("extents", [(0, 0), (0, 1), (1, 0)])
def test_the_sum_over_an_empty_axis_is_0(extents: tuple[int, int]) -> None:
    left, right = np.ones((2, extents[0])), np.ones((extents[1], 3))
    assert einsum([left, right], "mk,kn->mn", "f32").tolist() == [[0.0] * 3] * 2


def test_axes_of_different_extents_are_refused() -> None:
    for extents in ((2, 3), (3, 2), (0, 2), (2, 0)):
        with pytest.raises(ValueError, match="broadcast"):
            einsum([np.ones(extents[0]), np.ones(extents[1])], "k,k->", "f32")


def test_integers_add_modulo_the_width_of_the_accumulator() -> None:
    bytes_ = [np.full(2, 100, dtype=np.int8)] * 2
    assert einsum(bytes_, "k,k->", "i32") == 20000
    assert einsum(bytes_, "k,k->", "i8") == 32


def test_an_expression_must_fit() -> None:
    for operands, expr in (([A], "mk,kn->mn"), ([A, B], "mk,kn")):
        with pytest.raises(SpecError, match=f"{len(operands)} operands"):
            einsum(operands, expr, "f32")


def test_matmul_by_axes() -> None:
    assert matmul(A, B, [0, 1, 0, 1, 0, 1]).tolist() == (A @ B).tolist()
    assert matmul(A, B, [1, 0, 1, 0, 0, 1]).tolist() == (A.T @ B.T).tolist()
    assert matmul(A, B, [0, 1, 0, 1, 1, 0]).tolist() == (A @ B).T.tolist()
    assert legacy_axes(3, [1, 2, 1, 2, 1, 2], "x") == "aMK,aKN->aMN"
    assert legacy_axes(5, [1, 3, 4, 1, 3, 4], "x") == "aMcKe,aNcdK->abcMN"
    with pytest.raises(SpecError, match="six axes are needed, not 2"):
        matmul(A, B, [0, 1])
