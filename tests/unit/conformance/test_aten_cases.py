"""Samples of PyTorch's database of operators come with further inputs, as many as tell branches apart."""

from __future__ import annotations

import gc
import inspect
from itertools import islice

import pytest
import torch
from torch.utils import _pytree as pytree

from conformance.cases.aten import ELEMENTS, OTHERS, AtenCase, AtenSample, SampleSource


def samples_of(operator: str, count: int) -> list[AtenSample]:
    return list(islice(SampleSource(AtenCase("operator", operator, "float32")).usable(), count))


def test_calls_of_scalars_have_sets_of_inputs_for_both_sides_of_a_clamp() -> None:
    scalars, *_ = samples_of("clamp_min", 1)
    sets = [scalars.inputs, *scalars.extra_inputs]
    assert [[x.shape for x in one] for one in sets] == [[torch.Size([])] * 2] * (1 + OTHERS)
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
    for one, other in zip(first, again, strict=True):
        assert all(map(torch.equal, sum(one.extra_inputs, ()), sum(other.extra_inputs, ())))
        numbers = {tuple(torch.cat([x.reshape(-1) for x in inputs]).tolist()) for inputs in one.extra_inputs}
        assert len(numbers) == len(one.extra_inputs)


def test_no_generator_of_pytorch_outlives_the_samples() -> None:
    """One that is collected later switches gradients in the middle of what is captured then."""

    def waiting() -> int:
        alive = [one for one in gc.get_objects() if inspect.isgenerator(one) and one.gi_frame is not None]
        return sum("torch" in one.gi_code.co_filename for one in alive)

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
