"""Samples of ONNX models in a process of their own, and the references that compute them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from t2n_core.errors import BudgetError, InputError, MeaningError
from t2n_core.onnx_file.references import RUNTIME, STANDARD
from t2n_core.onnx_file.samples import _PROCESS, reference_samples
from tests.onnx_nets import linear, model, saved, tensor


def test_samples_are_the_models_outputs(tmp_path: Path) -> None:
    net = linear()
    weight, bias = (np.frombuffer(stored.raw_data, "f4") for stored in net.graph.initializer)
    x = np.random.default_rng(1).normal(size=(7, 5)).astype("f4")
    computed = reference_samples(saved(net, tmp_path / "net.onnx"), [(x,)])
    assert computed.reference == RUNTIME
    (sample,) = computed.samples
    assert sample.sizes == {"B": 7}
    np.testing.assert_allclose(sample.expected[0], x @ weight.reshape(5, 3) + bias, rtol=1e-5, atol=1e-6)


def test_onnx_own_evaluator_computes_what_onnxruntime_does_not(tmp_path: Path) -> None:
    node = helper.make_node("Max", ["x", "z"], ["y"])
    ports = [tensor(name, [6], TensorProto.INT16) for name in "xzy"]
    net = model([node], ports[:2], ports[2:])
    computed = reference_samples(saved(net, tmp_path / "net.onnx"))
    assert computed.reference == STANDARD
    assert len(computed.samples) == 3
    sample = computed.samples[0]
    np.testing.assert_array_equal(np.maximum(*sample.inputs), sample.expected[0])


def test_a_model_without_a_reference(tmp_path: Path) -> None:
    net = model([helper.make_node("Unknown", ["x"], ["y"], domain="mine")], [tensor("x", [2])], [tensor("y", [2])])
    net.opset_import.add(domain="mine", version=1)
    with pytest.raises(MeaningError, match="no reference loads"):
        reference_samples(saved(net, tmp_path / "net.onnx"))


def test_random_outputs_cannot_be_expected(tmp_path: Path) -> None:
    net = model([helper.make_node("RandomNormalLike", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])])
    with pytest.raises(InputError, match="random numbers in RandomNormalLike"):
        reference_samples(saved(net, tmp_path / "net.onnx"))


def test_one_process_computes_one_model_after_the_other(tmp_path: Path) -> None:
    path = saved(linear(), tmp_path / "net.onnx")
    reference_samples(path)
    assert _PROCESS._worker is not None
    first = _PROCESS._worker.pid
    with pytest.raises(InputError, match="has no dynamic dimension N"):
        reference_samples(path, sizes={"N": 2})
    assert len(reference_samples(path).samples) == 7
    assert _PROCESS._worker.pid == first


def test_a_model_that_takes_too_long(tmp_path: Path) -> None:
    count = np.array(1 << 60)
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Identity", ["v"], ["w"])],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("v", [3])],
        [tensor("still", [], TensorProto.BOOL), tensor("w", [3])],
    )
    node = helper.make_node("Loop", ["n", "go", "x"], ["y"], body=body)
    net = model([node], [tensor("x", [3])], [tensor("y", [3])], {"n": count, "go": np.array(True)})
    with pytest.raises(BudgetError, match="longer than 4 seconds"):
        reference_samples(saved(net, tmp_path / "net.onnx"), seconds=4)
