"""The causes of outputs that releases compute wrongly, each with the names of its cases."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True)
class Cause:
    """Why a release is wrong."""

    name: str
    """Name of the case for tract's repository."""
    reason: str
    example: str
    """The smallest case."""
    others: tuple[str, ...] = ()
    """Patterns of further cases."""

    def explains(self, case: str) -> bool:
        """Return whether a case is one of these."""
        return any(fnmatchcase(case, pattern) for pattern in (self.example, *self.others))


CAUSES: Final = (
    Cause("onnx-lstm-reverse", "`LSTM` ignores `direction` reverse, and runs forward", "test_lstm_reverse"),
    Cause("onnx-gru-reverse", "`GRU` ignores `direction` reverse, and runs forward", "test_gru_reverse"),
    Cause("onnx-rnn-reverse", "`RNN` ignores `direction` reverse, and runs forward", "test_simple_rnn_reverse"),
    Cause(
        "onnx-attention-causal-with-past",
        "`Attention` with `is_causal` and `past_key` masks as if there were no past",
        "test_attention_4d_causal_with_past_and_present",
    ),
    Cause(
        "onnx-attention-window",
        "`Attention` of opset 25 ignores `left_window_size` and `right_window_size`",
        "test_attention_bidirectional_window",
        ("test_attention_*local_window*",),
    ),
    Cause("onnx-celu-alpha", "`Celu` computes exp(x / alpha) - 1 without the factor alpha", "test_celu_float16"),
    Cause(
        "onnx-reduce-max-of-infinities",
        "`ReduceMax` of -inf alone is the least finite value, so that a row without keys is not found and stays NaN",
        "test_attention_23_boolmask_fullymasked_row_nan_robustness_expanded",
        ("test_attention_23_fullymasked_*_expanded", "test_attention_*_structural_empty_expanded"),
    ),
    Cause("onnx-swish-alpha", "`Swish` ignores `alpha`", "test_swiglu_alpha_expanded"),
    Cause(
        "onnx-space-to-depth-crd", "`SpaceToDepth` of opset 28 ignores `mode` CRD", "test_spacetodepth_crd_mode_example"
    ),
    Cause(
        "onnx-bit-shift-beyond-the-width",
        "`BitShift` shifts by Y modulo the width, where opset 28 has 0, or -1 for a right shift of a negative X",
        "test_bitshift_right_int8_negative_shift",
        ("test_bitshift_*_negative_shift", "test_bitshift_*_shift_ge_width"),
    ),
    Cause(
        "onnx-mod-signed-zero",
        "`Mod` of floats with `fmod` 0 gives zeros the sign of the dividend, not of the divisor",
        "test_mod_fmod_0_signed_zero_float32",
        ("test_mod_fmod_0_signed_zero_*",),
    ),
    Cause(
        "onnx-dft-inverse-one-sided",
        "`DFT` with `inverse` and `onesided` halves the axis instead of restoring the other half",
        "test_dft_irfft_opset19",
    ),
    Cause("onnx-lp-normalization-of-zeros", "`LpNormalization` of zeros is NaN", "test_l2normalization_axis_0"),
    Cause(
        "onnx-pool-dilations",
        "`MaxPool` and `AveragePool` ignore `dilations`",
        "test_maxpool_2d_dilations",
        ("test_maxpool_*_dilations*", "test_averagepool_*_dilations*"),
    ),
    Cause(
        "onnx-max-pool-storage-order",
        "`MaxPool` ignores `storage_order` in its indices",
        "test_maxpool_with_argmax_2d_precomputed_strides",
    ),
    Cause(
        "onnx-instance-normalization-of-a-batch",
        "`InstanceNormalization` takes mean and variance over the batch too",
        "test_instancenorm_epsilon",
    ),
    Cause(
        "onnx-scatter-reduction",
        "`ScatterND` and `ScatterElements` ignore `reduction`",
        "test_scatter_elements_with_duplicate_indices",
        ("test_scatter_elements_with_reduction_*", "test_scatternd_*"),
    ),
    Cause(
        "onnx-reshape-of-two-zeros",
        "`Reshape` takes a 0 of `shape` after a first dimension of 1 for 1",
        "test_attention_3d_transpose_verification_expanded",
    ),
    Cause(
        "onnx-matmul-by-a-vector",
        "`MatMul` of four dimensions by a vector is the product of two sums",
        "test_matmul_4d_1d",
    ),
)


def cause_of(case: str) -> Cause | None:
    """Return the cause for which a case is wrong; None if it is not known."""
    return next((cause for cause in CAUSES if cause.explains(case)), None)
