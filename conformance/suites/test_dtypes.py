"""Suite `dtypes`: every dtype through export and check; float16 with sums in float32; bfloat16 weights."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import pytest
import torch

from conformance.cases.dtypes import NETS, all_cases, sample
from t2n_core import ModelExport

ACCUMULATED = ("linear", "conv", "conv_transposed", "batch_norm", "matmul", "attention", "lstm", "gru", "rnn")
"""Nets that sum products."""


@lru_cache(maxsize=2)
def export_of(name: str, dtype: str) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    torch.manual_seed(sum(map(ord, name + dtype)))
    net, kind = NETS[name], getattr(torch, dtype)
    inputs = {word: sample(kind, net.shape) for word in ("x", "y")[: net.inputs]}
    axes = dict.fromkeys(inputs, net.axes) if net.axes else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ModelExport(net.make(kind).eval(), inputs, dynamic_axes=axes)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize(("name", "dtype"), [pytest.param(*case, id="-".join(case)) for case in all_cases()])
def test_dtype(name: str, dtype: str, nnef_export: Any) -> None:
    result = nnef_export(export_of(name, dtype))
    outcome = result.assert_parity("approximate")
    assert [output.dtype for output in outcome.outputs] == [str(a.dtype) for a in result.samples[0].expected]


@pytest.mark.nnef_export(
    target="tract",
    force_attention_inner_in_f32=True,
    force_linear_accumulation_in_f32=True,
    force_norm_in_f32=True,
    reify_sdpa_operator=True,
)
@pytest.mark.parametrize("name", ACCUMULATED)
def test_float16_summed_in_float32(name: str, nnef_export: Any) -> None:
    nnef_export(export_of(name, "float16")).assert_parity("approximate")


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", ["linear", "conv", "layer_norm", "lstm", "embedding"])
def test_bfloat16_weights(name: str, nnef_export: Any) -> None:
    """Check that weights and inputs become float32 with a warning, since the engine has no bfloat16."""
    torch.manual_seed(sum(map(ord, name)))
    net = NETS[name]
    model, x = net.make(torch.bfloat16).eval(), sample(torch.bfloat16, net.shape)
    axes = {"x": net.axes} if net.axes else None
    with pytest.warns(UserWarning, match="bfloat16"):
        export = ModelExport(model, {"x": x}, dynamic_axes=axes)
    result = nnef_export(export)
    result.assert_parity("approximate")
    assert all(p.dtype == torch.bfloat16 for p in model.parameters())
