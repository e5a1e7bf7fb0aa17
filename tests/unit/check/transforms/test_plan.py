"""The runs of a transformed model: sizes, outputs, seats and types."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from t2n_core.check.transforms.dtypes import answered_dtypes
from t2n_core.check.transforms.interface import Interface
from t2n_core.check.transforms.plan import plan_runs
from t2n_core.engine.tract.transforms.transform import transforms_from
from t2n_core.errors import InputError
from t2n_core.parity.samples import Sample

DRAW = np.random.default_rng(5).standard_normal


def sample(size: int) -> Sample:
    x, y = DRAW((size, 3)).astype(np.float32), DRAW((size, 2)).astype(np.float32)
    return Sample((x, np.arange(size)), (y, x), {"B": size})


SAMPLES = [sample(4), sample(4), sample(5)]
RESULT: Any = SimpleNamespace(
    output_names=["out", "same"],
    input_names=["x", "ids"],
    captured=SimpleNamespace(symbols={"B": 4}),
    sample_at=lambda sizes: sample(sizes["B"]),
    state=(),
)


def faces(inputs: str = "x:B,3,f32 ids:B,i64", outputs: str = "y_1:B,2,f32 x_1:B,3,f32") -> Interface:
    lists = ([tuple(port.split(":")) for port in words.split()] for words in (inputs, outputs))
    return Interface.of(dict(zip(("input", "output"), lists, strict=True)))


def planned(names: str, now: Interface) -> Any:
    return plan_runs(RESULT, transforms_from(names), SAMPLES, faces(), now)


def test_floats_take_the_type_of_the_model_and_integers_stay() -> None:
    plan = planned("f32_to_f16", faces("x:B,3,f16 ids:B,i64", "y_1:B,2,f16 x_1:B,3,f16"))
    assert [array.dtype for array in plan.samples[0].inputs] == [np.float16, np.int64]
    assert plan.samples[0].expected[0].dtype == np.float32
    answers = [tuple(array.astype(np.float16) for array in sample.expected) for sample in plan.samples]
    (first, *_) = answered_dtypes(plan.samples, answers)
    np.testing.assert_array_equal(first.expected[0], answers[0][0])


@pytest.mark.parametrize("name", ["same", "x_1"])
def test_chosen_outputs_alone_are_compared(name: str) -> None:
    plan = planned('{"name": "select_outputs", "outputs": ["' + name + '"]}', faces(outputs="x_1:B,3,f32"))
    assert plan.outputs == (1,)
    assert [len(sample.expected) for sample in plan.samples] == [1, 1, 1]


def test_samples_have_the_sizes_that_are_set() -> None:
    plan = planned('{"name": "set_symbols", "values": {"B": 5}}', faces())
    assert [sample.sizes for sample in plan.samples] == [{"B": 5}]
    plan = planned('{"name": "set_symbols", "values": {"B": 9}}', faces())
    assert [len(sample.inputs[0]) for sample in plan.samples] == [9]


def test_equal_sizes_sit_in_one_batch() -> None:
    plan = planned("batchify", faces("x:K,B,3,f32 ids:K,B,i64", "y_1:K,B,2,f32 x_1:K,B,3,f32"))
    assert [sample.inputs[0].shape for sample in plan.samples] == [(2, 4, 3), (1, 5, 3)]
    np.testing.assert_array_equal(plan.samples[0].expected[0][1], SAMPLES[1].expected[0])


@pytest.mark.parametrize(
    ("names", "now", "words"),
    [
        ('{"name": "select_outputs", "outputs": ["inner"]}', faces(), "is not an output of the archive"),
        ('{"name": "select_outputs", "outputs": []}', faces(outputs=""), "names no output"),
        ('{"name": "set_symbols", "values": {"T": 5}}', faces(), "has no size T"),
        ('{"name": "set_symbols", "values": {"B": "2*T"}}', faces(), "is not an integer"),
        ('{"name": "batchify", "shared": ["x"]}', faces("x:K,B,3,f32 ids:K,B,i64"), "share no input"),
        ("batchify", faces(), "axis moves to the front"),
        ("export_scan_state", faces("x:B,3,f32 ids:B,i64 scan.state_in:4,f32"), "scan.state_in"),
        ("conv_nhwc", faces(outputs="z:B,3,f32"), "1 outputs, of unknown origin"),
    ],
)
def test_an_interface_without_counterpart_is_refused(names: str, now: Interface, words: str) -> None:
    with pytest.raises(InputError) as refused:
        planned(names, now)
    assert words in str(refused.value)
