"""Inputs that hypothesis draws."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn

from t2n_core.check.sampling.hypothesis_inputs import draw_inputs, is_strategy
from t2n_core.export.model import ModelExport
from t2n_core.inference_target import TractNNEF
from tests.releases import NEWEST

FRAMES = st.integers(1, 9).flatmap(lambda t: hnp.arrays(np.float32, (2, t, 3), elements=st.floats(-9, 9, width=32)))


def test_what_is_drawn_is_the_same_each_time() -> None:
    first, second = draw_inputs(FRAMES), draw_inputs(FRAMES)
    assert 5 <= len(first) <= 10
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert is_strategy(FRAMES)
    assert not is_strategy([1])


def test_each_drawn_input_is_checked_at_its_own_size(tmp_path) -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh()).eval()
    export = ModelExport(model, {"input": torch.randn(2, 4, 3)}, dynamic_axes={"input": {1: "T"}}, extra_inputs=FRAMES)
    drawn = [sample for sample in export.samples if sample.label.startswith("inputs[")]
    assert len(drawn) == len(draw_inputs(FRAMES))
    assert all(sample.sizes == {"T": sample.inputs[0].shape[1]} for sample in drawn)
    assert len({sample.sizes["T"] for sample in drawn}) > 1
    outcome = export.to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity()
    assert {one["T"] for one in outcome.sizes} >= {sample.sizes["T"] for sample in drawn}
