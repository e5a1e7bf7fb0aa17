"""Sizes that are chosen by what the code of a model asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from t2n_core.check.sampling.code_sizes import CodeSizes, largest
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.parity.samples import Sample
from tests.nets import OfFunction

T = symbol("T")


def sample(sizes: Mapping[str, int]) -> Sample:
    return Sample((np.ones((sizes["T"], 5), np.float32),), (), dict(sizes))


def chosen(function: Callable[[Tensor], Any], high: int | None = None) -> list[int]:
    net = OfFunction(function)

    def run(given: Sequence[Tensor]) -> Any:
        return net(*given)

    def elements(sizes: Mapping[str, int]) -> int:
        return sizes["T"] * 5

    size_range = SizeRange({"T": (1, high)})
    search = CodeSizes(net, run, sample, elements, [torch.ones(7, 5)], [(T, 5)], {"T": 7}, size_range)
    return [item.sizes["T"] for item in search.samples(sample({"T": 7}), [sample({"T": 1}), sample({"T": 11})])]


def test_sizes_on_both_sides_of_a_comparison() -> None:
    near = chosen(lambda x: x * 2 if x.shape[0] > 40 else x)
    assert {39, 40, 41} <= set(near)


def test_none_beyond_the_range() -> None:
    assert 41 not in chosen(lambda x: x * 2 if x.shape[0] > 40 else x, high=40)


@pytest.mark.parametrize(
    "function", [lambda x: x * 2, lambda x: x * 2 if x.shape[1] > 40 else x, lambda x: x * 2 if len(x.T) > 40 else x]
)
def test_none_where_nothing_is_asked_about_a_size_that_varies(function: Callable[[Tensor], Any]) -> None:
    assert chosen(function) == []


def test_a_number_in_no_comparison_is_found_by_the_condition() -> None:
    limit = {"most": 13 * 17}
    assert {220, 221, 222} & set(chosen(lambda x: x * 2 if x.shape[0] == limit["most"] else x))


def test_the_largest_size_grows_with_the_example() -> None:
    assert (largest(3), largest(700)) == (512, 2800)
