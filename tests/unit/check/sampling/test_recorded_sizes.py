"""Runs that note what a model asks about its sizes, and the sizes that are chosen by it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from t2n_core.check.sampling.both_sides import BothSides
from t2n_core.check.sampling.recorded_run import Question, questions
from t2n_core.check.sampling.recorded_sizes import RecordingSizes, leaves_open, run_of, varying
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.parity.samples import Sample
from t2n_core.torch_graph.compat.private import FakeTensor
from t2n_core.torch_graph.proofs.compared_numbers import reads_sizes

S, T = symbol("S"), symbol("T")
SIZES = {"S": 5, "T": 7}
KEPT: dict[int, Tensor] = {}


def call(*sizes: int) -> Sample:
    return Sample(tuple(np.ones((size, 3), np.float32) for size in sizes), ())


class Net(nn.Module):
    def __init__(self, function: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.function(x, y)


def asked(net: nn.Module, sizes: dict[str, int] = SIZES) -> list[Question]:
    return questions(net, lambda tensors: net(*tensors), [torch.ones(5, 3), torch.ones(7, 3)], [(S, 3), (T, 3)], sizes)


def of_the_model(function: Callable[[Tensor, Tensor], Any]) -> list[tuple[str, bool]]:
    return [(str(question.condition), question.answer) for question in asked(Net(function)) if question.is_the_models]


def test_conditions_are_noted_in_the_symbols_of_the_inputs() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        z = torch.cat([x, x, y])
        if len(z) > 100 or x.shape[0] * y.shape[0] == 35 or math.ceil(y.size(0) / 2) == 3:
            return z * 2
        return z

    assert of_the_model(function) == [("2*S + T > 100", False), ("Eq(S*T, 35)", True)]


def test_a_number_taken_for_a_size_hides_nothing_after_it() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        for _ in range(x.shape[0]):
            y = y + 1
        return y * 2 if x.shape[0] > 40 else y

    assert of_the_model(function) == [("Eq(S, 5)", True), ("S > 40", False)]


def test_what_was_asked_before_an_error_is_noted() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        if y.shape[0] > 9:
            return y
        return y[: int(y.sum().item())] if x.sum() > 0 else x

    assert of_the_model(function) == [("T > 9", False)]


def test_the_model_stays_as_it_is() -> None:
    @functools.lru_cache
    def table(size: int) -> Tensor:
        return torch.ones(size, 3)

    net = Net(lambda x, y: x)

    def function(x: Tensor, y: Tensor) -> Tensor:
        net.last = x * 2
        KEPT[0] = y * 2
        return table(x.shape[0]) + x if x.shape[0] < 9 else x

    net.function = function
    assert [str(question.condition) for question in asked(net) if question.is_the_models] == ["S < 9"]
    assert "last" not in vars(net)
    assert not KEPT
    assert not isinstance(table(5), FakeTensor)


@pytest.mark.parametrize(
    ("function", "compares"),
    [
        (lambda x, y: x.shape[0] > 3, True),
        (lambda x, y: y.size(0) * 0.5 > 3, True),
        (lambda x, y: math.ceil(y.size(0) / 3) == 2, True),
        (lambda x, y: len(y), True),
        (lambda x, y: int(y.shape[0]), True),
        (lambda x, y: y.shape == x.shape, True),
        (lambda x, y: math.sqrt(y.shape[0]) > 3, True),
        (lambda x, y: y.shape[0] // 100 == 1, True),  # 0 at all sizes that were run
        (lambda x, y: [len(x.T), x.shape[1] > 3, int(x.shape[1])], False),
        (lambda x, y: x.reshape(x.shape[0], 3, 1), False),
    ],
)
def test_only_comparisons_of_sizes_that_vary_count(function: Callable[[Tensor, Tensor], Any], compares: bool) -> None:
    def run(given: Sequence[Tensor]) -> Any:
        return function(*given)

    runs = [run_of(Net(function), run, sample) for sample in (call(5, 7), call(11, 13))]
    assert any(varying(runs)) is compares
    assert leaves_open(Net(function), run, runs, [call(11, 13)]) is compares


@pytest.mark.parametrize(
    ("function", "is_open"),
    [
        (lambda x, y: x.shape[0] > 6, False),  # 5 and 11 answer it
        (lambda x, y: [x.shape[0] > 6, y.shape[0] > 9, x.shape[0] > 6], False),
        (lambda x, y: x.shape[0] == 40, True),
        (lambda x, y: x.shape[0] > 6 and y.shape[0] > 40, True),
        (lambda x, y: [x.shape[0] > 6, y.shape[0] > 6], True),  # 7 and more of y for each size of x
        (lambda x, y: [x.shape[1] > 3, x.shape[0] > 6], False),  # the first is of a static size
        (lambda x, y: x.shape[0] == 5 and y.shape[0] > 9 and x.shape[1] > 3, True),  # one run alone reaches the last
        (lambda x, y: range(int(x.shape[0])), True),
        (lambda x, y: x if x.shape[0] > 6 and y.T.is_contiguous() else y, True),
    ],
)
def test_comparisons_that_samples_answer_both_ways_are_not_open(
    function: Callable[[Tensor, Tensor], Any], is_open: bool
) -> None:
    def run(given: Sequence[Tensor]) -> Any:
        return function(*given)

    others = [call(11, 13), call(5, 13), call(11, 7)]
    runs = [run_of(Net(function), run, sample) for sample in (call(5, 7), others[0])]
    assert leaves_open(Net(function), run, runs, others) is is_open


@pytest.mark.parametrize(
    ("function", "asks"),
    [
        (lambda x, y: x.reshape(x.shape[0], 3, 1), False),
        (lambda x, y: x.shape[1] > 3, True),
        (lambda x, y: x * 2 if x.T.is_contiguous() else x, True),
        (lambda x, y: x * 2 if x.T.stride(0) == 1 else x, True),
    ],
)
def test_a_model_that_asks_nothing_takes_one_way(function: Callable[[Tensor, Tensor], Any], asks: bool) -> None:
    assert bool(run_of(Net(function), lambda tensors: function(*tensors), call(5, 7)).notes) is asks


def test_any_comparison_counts_where_the_model_runs_at_one_size_only() -> None:
    def run(given: Sequence[Tensor]) -> Any:
        return given[0].shape[0] > 3

    net = Net(lambda x, y: x)
    assert leaves_open(net, run, [run_of(net, run, call(5))], [])


class Sizes(NamedTuple):
    longest: int
    mean: float


def test_sizes_that_a_recorded_run_stores_become_plain_numbers() -> None:
    net = Net(lambda x, y: x)
    lengths: dict[int, list[int]] = {}
    last = 0

    @functools.lru_cache
    def table(size: int) -> Tensor:
        return torch.ones(size, 3)

    def function(x: Tensor, y: Tensor) -> Tensor:
        nonlocal last
        last = x.shape[0]
        net.longest, net.sizes, net.shape = last, Sizes(last, last * 0.5), x.shape
        lengths[last] = [y.shape[0] + 1]
        KEPT[y.shape[0]] = y
        return table(last) + x if last > 3 else x

    net.function = function
    assert run_of(net, lambda tensors: net(*tensors), call(5, 7)).notes
    assert (last, net.longest, net.sizes, net.shape) == (5, 5, Sizes(5, 2.5), torch.Size([5, 3]))
    assert (lengths, list(KEPT)) == ({5: [8]}, [7])
    assert isinstance(net.sizes, Sizes)
    assert isinstance(net.shape, torch.Size)
    stored = [last, net.longest, *net.sizes, *net.shape, *lengths, *lengths[5], *KEPT]
    assert {type(number) for number in stored} == {int, float}
    assert table.cache_info().currsize == 0
    KEPT.clear()


def test_a_run_that_stores_no_size_leaves_what_it_stores() -> None:
    net = Net(lambda x, y: x)
    table = functools.lru_cache(lambda: torch.ones(3))

    def function(x: Tensor, y: Tensor) -> Tensor:
        net.scale = table() * 2
        return x * net.scale if x.shape[0] > 3 else x

    net.function = function
    assert run_of(net, lambda tensors: net(*tensors), call(5, 7)).notes
    assert torch.equal(net.scale, torch.full((3,), 2.0))
    assert table.cache_info().currsize == 1


def test_code_without_a_module_of_python_is_the_models() -> None:
    scope: dict[str, Any] = {"Module": nn.Module}
    exec("class Made(Module):\n    def forward(self, x, y):\n        return x * 2 if x.shape[0] > 40 else x", scope)
    net = scope["Made"]()
    assert reads_sizes(net)
    runs = [run_of(net, lambda tensors: net(*tensors), sample) for sample in (call(5, 7), call(11, 13))]
    assert leaves_open(net, lambda tensors: net(*tensors), runs, [call(11, 13)])
    assert [str(question.condition) for question in asked(net) if question.is_the_models] == ["S > 40"]


def test_recorded_sizes_are_integers() -> None:
    with RecordingSizes():
        size = torch.ones(4, 3).shape[0]
        assert torch.zeros(size * 2, size // 2).shape == (8, 2)
        assert {4: "known"}[size] == "known"
        assert list(range(size)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "decides",
    [
        lambda s, t: s > 900,
        lambda s, t: s * t == 14400,
        lambda s, t: s + t == 2003,
        lambda s, t: s == t and t > 31,
        lambda s, t: t % 61 == 17 and s % 2 == 0,
        lambda s, t: t > 40 and s > 60 and s < t,
    ],
)
def test_sizes_across_decisions_are_found_also_behind_others(decides: Callable[[int, int], bool]) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return x * 2 if decides(x.shape[0], y.shape[0]) else x

    accepted_sizes: list[dict[str, int]] = []

    def take(sizes: Any) -> bool:
        accepted_sizes.append(sizes)
        return True

    net = Net(function)
    bounds = {"S": (1, None), "T": (1, None)}
    BothSides(lambda sizes: asked(net, dict(sizes)), lambda sizes: True, take, bounds, [SIZES]).search(SIZES)
    assert any(decides(**{name.lower(): size for name, size in sizes.items()}) for sizes in accepted_sizes)
    assert len(accepted_sizes) <= 12
