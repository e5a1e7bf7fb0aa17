"""Cases of the suites: weights spread as after training, and samples of PyTorch's database come with further inputs."""

from __future__ import annotations

import gc
import inspect
from itertools import islice

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torch.utils import _pytree as pytree

from conformance.cases.aten import ELEMENTS, OTHERS, AtenCase, AtenSample, SampleSource
from conformance.cases.models.case import ModelCase, image


def samples_of(operator: str, count: int) -> list[AtenSample]:
    return list(islice(SampleSource(AtenCase("operator", operator, "float32")).usable(), count))


def test_calls_of_scalars_have_sets_of_inputs_for_both_sides_of_a_clamp() -> None:
    scalars, *_ = samples_of("clamp_min", 1)
    sets = [scalars.inputs, *scalars.extra_inputs]
    assert [[x.shape for x in inputs] for inputs in sets] == [[torch.Size([])] * 2] * (1 + OTHERS)
    assert {bool(low > x) for x, low in sets} == {True, False}


@pytest.mark.parametrize("operator", ["add", "special.xlog1py", "amax", "nn.functional.max_pool2d"])
def test_calls_of_few_numbers_have_more_sets_and_others_one(operator: str) -> None:
    for sample in samples_of(operator, 6):
        results = [leaf for leaf in pytree.tree_leaves(sample.model(*sample.inputs)) if isinstance(leaf, torch.Tensor)]
        numbers = min(sum(x.numel() for x in sample.inputs), *(x.numel() for x in results))
        sets = 1 + len(sample.extra_inputs)
        assert sets == 1 + OTHERS or sets == 2 or sets * numbers >= ELEMENTS > (sets - 1) * numbers
        assert sets > 2 or numbers >= ELEMENTS / 2


def test_sets_of_one_call_are_different_and_the_same_each_time() -> None:
    first, again = samples_of("add", 3), samples_of("add", 3)
    for sample, other in zip(first, again, strict=True):
        assert all(map(torch.equal, sum(sample.extra_inputs, ()), sum(other.extra_inputs, ())))
        numbers = {tuple(torch.cat([x.reshape(-1) for x in inputs]).tolist()) for inputs in sample.extra_inputs}
        assert len(numbers) == len(sample.extra_inputs)


def test_no_generator_of_pytorch_outlives_the_samples() -> None:
    """One that is collected later switches gradients in the middle of what is captured then."""

    def waiting() -> int:
        alive = [item for item in gc.get_objects() if inspect.isgenerator(item) and item.gi_frame is not None]
        return sum("torch" in generator.gi_code.co_filename for generator in alive)

    samples_of("conj", 1)
    gc.collect()
    gc.disable()
    try:
        before = waiting()
        samples_of("conj", 1)
        assert waiting() == before
    finally:
        gc.enable()


def test_operators_that_do_not_look_at_their_sizes_have_no_free_axes() -> None:
    names = ("abs", "_segment_reduce.offsets")
    checked, unchecked = (next(SampleSource(AtenCase("operator", name, "float32")).usable()) for name in names)
    assert checked.dynamic_axes
    assert not unchecked.dynamic_axes


class Block(nn.Module):
    """A kernel and a norm whose gains start with this mean and deviation."""

    def __init__(self, width: int, mean: float, deviation: float) -> None:
        super().__init__()
        self.kernel, self.norm = nn.Conv2d(width, 8, 3, padding=1), nn.BatchNorm2d(8)
        nn.init.normal_(self.norm.weight, mean, deviation)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functional.silu(self.norm(self.kernel(input)))


@pytest.mark.parametrize(("mean", "deviation"), [(1.0, 0.0), (0.0, 0.02)], ids=["ones", "small"])
def test_outputs_move_with_the_inputs_whatever_gains_a_library_starts_with(mean: float, deviation: float) -> None:
    def make() -> nn.Module:
        return nn.Sequential(*(Block(width, mean, deviation) for width in (3, 8, 8, 8, 8, 8)))

    model, inputs = ModelCase(make, image(2, 3, 8, 8, name="input")).build(seed=1)
    with torch.no_grad():
        moved = model(torch.randn(2, 3, 8, 8)) - model(**inputs)
    assert moved.std() > 0.1


def test_gains_of_weight_norms_leave_numbers_as_large_as_they_are() -> None:
    def make() -> nn.Module:
        return nn.Sequential(*(weight_norm(nn.Conv2d(8, 8, 3, padding=1)) for _ in range(8)))

    model, inputs = ModelCase(make, image(2, 8, 8, 8, name="input")).build(seed=1)
    with torch.no_grad():
        assert 0.1 < model(**inputs).std() < 10
