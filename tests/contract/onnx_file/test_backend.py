"""ONNX's own runner of tests on releases of tract, through the backend of the package."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.backend.test import BackendTest

from t2n_core import onnx_backend
from t2n_core.errors import EngineLoadError, T2NError
from t2n_core.onnx_backend import backend_for
from tests.onnx_nets import model, tensor
from tests.releases import LINES, NEWEST

OUTCOMES = {
    "test_lstm_defaults_cpu": ("right", "right"),
    "test_lstm_reverse_cpu": ("AssertionError", "AssertionError"),
    "test_swish_cpu": ("EngineLoadError", "right"),
    "test_single_relu_model_cpu": ("right", "right"),
    "test_det_2d_cpu": ("EngineLoadError", "EngineLoadError"),
    "test_shape_start_greater_than_end_cpu": ("EngineCrash", "EngineRunError"),
    "test_lstm_defaults_cuda": ("skipped", "skipped"),
}
"""Test of onnx -> its outcomes in the newest releases of the last two lines."""


class Outcomes(unittest.TestResult):
    """The outcome of each test: `right`, `skipped`, or the class of its error."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[str, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802  names of unittest
        self.of[test._testMethodName] = "right"

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self.of[test._testMethodName] = "skipped"

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.of[test._testMethodName] = err[0].__name__

    addFailure = addError  # noqa: N815


@pytest.mark.parametrize("place", [0, 1])
def test_the_runner_of_onnx(place: int) -> None:
    runner = BackendTest(backend_for(LINES[place - 2]), __name__)
    outcomes = Outcomes()
    for case in runner.test_cases.values():
        for name in sorted(OUTCOMES.keys() & vars(case).keys()):
            case(name).run(outcomes)
    assert outcomes.of == {name: expected[place] for name, expected in OUTCOMES.items()}


def relu() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [3])], [tensor("y", [3])])


def test_the_module_is_a_backend_of_the_newest_release() -> None:
    x = np.array([-1.0, 0.5, 2.0], "f4")
    assert onnx_backend.supports_device("CPU")
    (y,) = onnx_backend.run_model(relu(), [x])
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    (y,) = onnx_backend.prepare(relu(), "CPU", release=LINES[0]).run([x])
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_a_refused_model_is_an_error_of_prepare() -> None:
    net = model([helper.make_node("Det", ["x"], ["y"])], [tensor("x", [3, 3])], [tensor("y", [])])
    with pytest.raises(EngineLoadError, match=rf"(?s)Det.*target: tract {NEWEST}"):
        onnx_backend.prepare(net, release=NEWEST)


def test_values_that_no_release_takes_are_errors() -> None:
    loaded = onnx_backend.prepare(relu(), release=NEWEST)
    for wrong in (np.array(["a", "b", "c"], object), np.zeros(4, "f4")):
        with pytest.raises(T2NError):
            loaded.run([wrong])
