"""Numbers rounded to a grid, as models trained or converted for 8 bits have them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.ao.quantization.fx import _decomposed  # noqa: F401  registers its operators

from t2n_core.torch_graph.custom_ops import integer_arithmetic
from tests.contract.cases import case, randint, randn, tensor, weight

aten = torch.ops.aten
ao = torch.ops.quantized_decomposed
HALVES = tensor([-0.5, 0.5, 1.5, 2.5, -1.5, 300.0, -300.0, 0.0])
SCALES = tensor([0.1, 0.25, 0.03])
ZEROS = tensor([0, 3, -7], torch.int32)
i8, u8 = torch.int8, torch.uint8
BATCH = {0: {0: "B"}}

CASES = [
    case("fake_quantize", torch.fake_quantize_per_tensor_affine, randn(3, 5), 0.05, 3, -128, 127).dynamic(BATCH),
    case("fake_quantize of halves", torch.fake_quantize_per_tensor_affine, HALVES, 1.0, 2, 0, 255),
    case(
        "fake_quantize of tensors", torch.fake_quantize_per_tensor_affine, randn(3, 5), weight(tensor(0.05)),
        weight(tensor(3, torch.int32)), -8, 7,
    ),
    case(
        "fake_quantize per channel", torch.fake_quantize_per_channel_affine, randn(4, 3, 5), weight(SCALES),
        weight(ZEROS), 1, -128, 127,
    ).dynamic(BATCH),
    case("fake_quantize, aten", aten.fake_quantize_per_tensor_affine.default, randn(3, 5), 0.05, 3, -8, 7),
    case(
        "fake_quantize of tensors, aten", aten.fake_quantize_per_tensor_affine.tensor_qparams, randn(3, 5),
        weight(tensor(0.05)), weight(tensor(3, torch.int32)), -8, 7,
    ),
    case(
        "fake_quantize per channel, aten", aten.fake_quantize_per_channel_affine.default, randn(4, 3, 5),
        weight(SCALES), weight(ZEROS), 1, -128, 127,
    ),
    case("quantize", ao.quantize_per_tensor, randn(3, 5), 0.05, 3, -128, 127, i8).dynamic(BATCH),
    case("quantize to bytes", ao.quantize_per_tensor, HALVES, 0.5, 128, 0, 255, u8),
    case("dequantize", ao.dequantize_per_tensor, randint(-128, 128, 3, 5, dtype=i8), 0.05, 3, -128, 127, i8),
    case("quantize per channel", ao.quantize_per_channel, randn(3, 5), weight(SCALES), weight(ZEROS), 0, -128, 127, i8),
    case(
        "dequantize per channel", ao.dequantize_per_channel, randint(-128, 128, 5, 3, dtype=i8), weight(SCALES),
        weight(ZEROS), 1, -128, 127, i8,
    ),
    case(
        "dequantise a weight", lambda x, w, s, z: x @ ao.dequantize_per_channel(w, s, z, 0, -128, 127, i8).T,
        randn(4, 5), weight(randint(-128, 128, 3, 5, dtype=i8)), weight(SCALES), weight(ZEROS),
    ).dynamic(BATCH),
    case(
        "dequantise a weight without zero points",
        lambda x, w, s: x @ ao.dequantize_per_channel(w, s, None, 0, 0, 255, u8).T,
        randn(4, 5), weight(randint(0, 256, 3, 5, dtype=u8)), weight(SCALES),
    ),
    case(
        "dequantise a large weight", lambda x, w: x @ ao.dequantize_per_tensor(w, 0.02, 3, -128, 127, i8).T,
        randn(2, 520), weight(randint(-128, 128, 530, 520, dtype=i8)),
    ),
    case(
        "convolution of a dequantised weight",
        lambda x, w: F.conv2d(x, integer_arithmetic.dequantised(w, 1.0, 0), padding=1),
        randn(2, 3, 6, 7), weight(randint(-128, 128, 4, 3, 3, 3, dtype=i8)),
    ).dynamic(BATCH),
    case("bounded", integer_arithmetic.bounded, randn(3, 5), -0.5, 1.0).dynamic(BATCH),
    case("whole sums", lambda x: integer_arithmetic.whole_sums(x.round()) * 0.3, randn(3, 5, scale=9.0)).dynamic(BATCH),
]  # fmt: skip
