"""A part of the conformance suite `sizes`: one archive of each kind of pattern, oldest and newest engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cases.sizes.patterns import NETS
from conformance.checks.sizes import SECONDS_TO_RUN, check_result, export_of
from t2n_core import TractNNEF
from t2n_core.nnef.reading.members import unpack_members
from tests.releases import NEWEST

CHOSEN = (
    "last_step", "differences", "halves_swapped", "every_second", "pad_right", "conv_strided", "max_pool_padded",
    "upsample_twice", "gru_behind_a_strided_convolution", "positions_rotary", "mask_causal", "cache_joined",
    "similarity", "image_conv_strided",
)  # fmt: skip

RULES = (
    "crop_first_64", "crop_last_64", "crop_linear_mean", "crop_by_min", "first_three", "from_the_third",
    "last_three", "all_but_the_last_three", "one_to_four", "without_two_at_both_ends", "chunk_first",
    "pad_to_at_least_64", "pad_then_cut_to_64", "scaled_by_min", "narrow_to_the_minimum", "if_longer_crop",
    "if_shorter_pad", "if_odd_pad", "if_few_take_all", "max_pool_ceil_point", "size_of_max_pool_ceil",
    "gru_per_frame", "lstm_every_second_step_as_batch", "rnn_half_the_steps_as_batch", "frames_stacked_by_three",
    "pyramid_of_pairs", "chosen_step", "chosen_step_kept", "chosen_embedding", "einsum_covariance",
    "einsum_ellipsis", "embedded_casts", "any_positive", "all_scores_flattened", "conv_transposed_small_kernel",
    "conv_transposed_gaps", "batch_mean_subtracted", "shifted_after_a_write",
    "crop_to_a_transform", "crop_to_a_transform_of_two_axes",
    *(name for name in NETS if name.startswith("pad_to_a_multiple_of_")),
)  # fmt: skip
"""Rules on sizes that exporters are known to freeze, to truncate, or to refuse, at the size that most users trace."""


@pytest.mark.filterwarnings("ignore:the archive holds only")
@pytest.mark.parametrize("version", ["0.20.22", NEWEST])
@pytest.mark.parametrize("name", RULES)
def test_rule(name: str, version: str, tmp_path: Path) -> None:
    test_pattern(name, version, tmp_path)


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("version", ["0.19.15", NEWEST])
def test_pattern(name: str, version: str, tmp_path: Path) -> None:
    traced = NETS[name].traced[1]
    result = export_of(name, tuple(traced.values())).to(TractNNEF(version, check_io=False), tmp_path / "model.tar")
    outcome = check_result(result, name, traced, SECONDS_TO_RUN)
    assert outcome.passed, outcome.describe()


@pytest.mark.parametrize("name", ["gru_per_frame", "gru_behind_a_strided_convolution"])
def test_a_state_that_is_kept_from_call_to_call_is_a_mismatch(name: str, tmp_path: Path) -> None:
    traced = NETS[name].traced[1]
    result = export_of(name, tuple(traced.values())).to(TractNNEF(NEWEST, check_io=False), tmp_path / "model.tar")
    unpack_members(result.archive, tmp_path / "changed", most=1 << 30)
    graph = tmp_path / "changed" / "graph.nnef"
    graph.write_text(graph.read_text("utf-8").replace(", reset_every_turn = 1", ""), "utf-8")
    outcome = check_result(replace(result, archive=graph.parent), name, traced, SECONDS_TO_RUN)
    assert outcome.error is not None, outcome.describe()
    assert outcome.error.error_class == "SecondCallError"
