"""A part of the conformance suite `sizes`: one archive of each kind of pattern, oldest and newest engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.suites.sizes_cases import NETS
from conformance.suites.sizes_checks import SECONDS_TO_RUN, check_result, export_of
from t2n_core import TractNNEF

CHOSEN = (
    "last_step", "differences", "halves_swapped", "every_second", "pad_right", "conv_strided", "max_pool_padded",
    "upsample_twice", "gru_behind_a_strided_convolution", "positions_rotary", "mask_causal", "cache_joined",
    "similarity", "image_conv_strided",
)  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("version", ["0.19.15", "0.23.9"])
def test_pattern(name: str, version: str, tmp_path: Path) -> None:
    traced = NETS[name].traced[1]
    result = export_of(name, tuple(traced.values())).to(TractNNEF(version, check_io=False), tmp_path / "model.tar")
    outcome = check_result(result, name, traced, SECONDS_TO_RUN)
    assert outcome.passed, outcome.describe()
