"""Models that were exported for tract: their archives have the values that PyTorch and the engine compute."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._pytree import tree_flatten

from t2n_core import ModelExport, TractNNEF
from t2n_core.dialect import evaluate
from t2n_core.parity.samples import Sample
from tests.nets import Attention, OfFunction, TinyDecoder, net_of
from tests.releases import NEWEST

RTOL, ATOL = 1e-6, 1e-7
"""Of the model in float64: numbers in the text of an archive are float32. The absolute one is times the magnitude."""

Made = tuple[nn.Module, tuple[Any, ...], dict[int, dict[int, str]]]


def cached() -> Made:
    past = tuple(torch.randn(1, 1, 3, 8) for _ in range(2))
    return TinyDecoder(), (torch.tensor([[3, 1, 2, 5]]), *past), {}


def residual() -> nn.Module:
    layers = nn.Sequential(nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 6, 1))
    return net_of(lambda self, x: functional.relu(x + self.layers(self.stem(x))), layers=layers, stem=nn.Identity())


STANDARD: dict[str, Callable[[], Made]] = {
    "perceptron": lambda: (
        nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3), nn.Sigmoid()),
        (torch.randn(4, 7),),
        {0: {0: "B"}},
    ),
    "convolutions": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8, dilation=2), nn.MaxPool2d(2)),
        (torch.randn(2, 3, 19, 17),),
        {},
    ),
    "residual block": lambda: (residual(), (torch.randn(2, 6, 9, 7),), {}),
    "transposed convolution": lambda: (
        nn.Sequential(nn.ConvTranspose1d(4, 6, 4, 3, 1, 1, groups=2), nn.LeakyReLU(0.3)),
        (torch.randn(2, 4, 9),),
        {},
    ),
    "average pool": lambda: (nn.Sequential(nn.AvgPool2d(3, 2, 1), nn.Flatten(), nn.Linear(60, 4)),
                             (torch.randn(2, 3, 9, 8),), {}),
    "attention": lambda: (Attention(), (torch.randn(3, 5, 8),), {}),
    "moments of a batch": lambda: (nn.InstanceNorm1d(4), (torch.randn(3, 4, 11),), {}),
    "plain recurrence": lambda: (nn.RNN(4, 5, nonlinearity="relu"), (torch.randn(6, 2, 4),), {}),
}  # fmt: skip
"""Models whose archives have operators of the standard only."""
WITH_TRACT: dict[str, Callable[[], Made]] = {
    "windows of a sequence": lambda: (
        OfFunction(lambda x: x[:, 1:] - x[:, :-1] + x.mean(1, keepdim=True)),
        (torch.randn(2, 7, 3),),
        {0: {1: "T"}},
    ),
    "gru": lambda: (nn.GRU(4, 5), (torch.randn(6, 2, 4),), {0: {0: "T"}}),
    "lstm": lambda: (nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), (torch.randn(2, 6, 4),), {0: {1: "T"}}),
    "cache": cached,
    "transformer": lambda: (
        nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True).eval(),
        (torch.randn(2, 5, 8),),
        {0: {1: "T"}},
    ),
    "layer norm": lambda: (
        nn.Sequential(nn.LayerNorm(6), nn.GELU(), nn.SiLU()), (torch.randn(4, 3, 6),), {0: {0: "B"}}),
    "embedding": lambda: (nn.Embedding(11, 4), (torch.tensor([[3, 10, 0]]),), {}),
    "one hot": lambda: (OfFunction(lambda x: functional.one_hot(x, 7).float()), (torch.tensor([[3, 6, 0]]),), {}),
    "sorted": lambda: (OfFunction(lambda x: x.topk(3, -1)), (torch.randn(4, 9),), {}),
    "scatter": lambda: (
        OfFunction(lambda x: x.scatter(1, torch.tensor([[1, 0], [2, 1]]), 9.0)), (torch.randn(2, 3),), {}),
    "resize": lambda: (nn.Upsample(scale_factor=2, mode="bilinear"), (torch.randn(1, 2, 5, 3),), {}),
    "einsum": lambda: (
        OfFunction(lambda x: torch.einsum("bij,bkj->bik", x, x * 2 - 1)), (torch.randn(2, 5, 3),), {0: {1: "T"}}),
    "rounding and errors": lambda: (
        OfFunction(lambda x: (torch.erf(x), x.round(), x.clamp(-1))), (torch.randn(5, 4),), {}),
    "triangle": lambda: (OfFunction(lambda x: x.tril(1) + x.cumsum(0)), (torch.randn(5, 4),), {}),
    "rms norm": lambda: (nn.RMSNorm(6), (torch.randn(3, 6),), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", [*STANDARD, *WITH_TRACT])
def test_an_archive_has_the_values_of_the_model(name: str, tmp_path: Path) -> None:
    torch.manual_seed(5)
    model, inputs, axes = {**STANDARD, **WITH_TRACT}[name]()
    export = ModelExport(
        model.eval(),
        inputs,
        input_names=[f"in_{index}" for index in range(len(inputs))],
        dynamic_axes={f"in_{index}": of for index, of in axes.items()},
    )
    archive = tmp_path / "model.nnef.tar"
    result = export.to(TractNNEF(NEWEST, check_io=False), archive)
    samples = [sample for sample in result.samples if isinstance(sample, Sample)]
    assert samples
    double = copy.deepcopy(model).eval().double()
    for sample in samples:
        tensors = evaluate(archive, sample.inputs)
        wide = [torch.from_numpy(array) for array in sample.inputs]
        expected = tree_flatten(double(*(x.double() if x.is_floating_point() else x for x in wide)))[0]
        for tensor, value in zip(tensors.values(), expected, strict=True):
            reference = value.detach().numpy()
            assert tensor.shape == reference.shape
            scale = max(1.0, float(np.abs(reference).max(initial=0)))
            np.testing.assert_allclose(tensor.array, reference, rtol=RTOL, atol=ATOL * scale)
    result.assert_parity("approximate")
