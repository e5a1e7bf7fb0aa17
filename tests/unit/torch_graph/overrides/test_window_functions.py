"""Windows of dynamic sizes are PyTorch's own, and so are numbers that Python computes from sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer
from t2n_core.torch_graph.compat.patches import swaps
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of
from t2n_core.torch_graph.overrides.symbolic_math import keep_math_symbolic
from t2n_core.torch_graph.overrides.window_functions import cosines
from tests.nets import OfFunction


@pytest.mark.parametrize("periodic", [True, False])
def test_windows(periodic: bool) -> None:
    for size in range(1, 40):
        for plain, weights in [
            (torch.hann_window, [0.5, 0.5]),
            (torch.hamming_window, [0.54, 0.46]),
            (torch.blackman_window, [0.42, 0.5, 0.08]),
        ]:
            for dtype in (torch.float32, torch.float64):
                window = cosines(size, periodic, weights, dtype)
                assert window.dtype == dtype
                torch.testing.assert_close(window, plain(size, periodic, dtype=dtype), atol=1e-6, rtol=1e-5)


def captured(function: Callable[[torch.Tensor], Any], size: int = 5) -> CapturedModel:
    model = OfFunction(function)
    inputs = bind_inputs(source_of(model), {"x": torch.randn(2, size)})
    return TorchModuleTracer(model, args=inputs, dynamic_axes={"x": {1: "T"}}).trace()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * torch.hann_window(x.shape[1]),
        lambda x: x * torch.hamming_window(x.shape[1], False, 0.6, beta=0.4),
        lambda x: x * torch.blackman_window(x.shape[1], periodic=False),
        lambda x: x * math.log(x.shape[1]) / math.log(512),
        lambda x: x * math.log(x.shape[1], 2) + math.log10(x.shape[1]) + math.log2(x.shape[1]),
        lambda x: x * math.sqrt(x.shape[1]),
        lambda x: x * min(1.0, x.shape[1] / 64) + max(x.shape[1] / 3, 2),
        lambda x: x.tensor_split(3, 1)[1] + torch.tensor_split(x, 3, -1)[1],
    ],
)
def test_capture_keeps_the_size_free(function: Callable[[torch.Tensor], Any]) -> None:
    assert str(captured(function).range) == "T >= 1"


@pytest.mark.parametrize("size", range(1, 12))
def test_pieces_of_any_size(size: int) -> None:
    graph = captured(lambda x: x.tensor_split(3, 1)).graph
    pieces = [int(v.shape[1].subs(dict.fromkeys(v.shape[1].free_symbols, size))) for v in graph.outputs]
    assert pieces == [piece.shape[1] for piece in torch.zeros(2, size).tensor_split(3, 1)]


def test_wrong_pieces_are_pytorchs_error() -> None:
    with pytest.raises(CaptureError):
        captured(lambda x: x.tensor_split(0, 1))


def test_python_is_as_before_afterwards() -> None:
    before = (math.log, math.sqrt, min, max)
    with swaps() as swap:
        keep_math_symbolic(swap)
        assert (math.log(8, 2), math.sqrt(4), min(3, 2), max([1, 2], default=0)) == (3, 2, 2, 2)
        assert math.log is not before[0]
    assert (math.log, math.sqrt, min, max) == before
