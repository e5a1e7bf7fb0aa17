"""Operators that change nothing, and casts."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.contract.cases import bools, case, randint, randn, tensor, uniform

aten, prims = torch.ops.aten, torch.ops.prims
SAME = "clone detach alias lift_fresh_copy positive resolve_conj resolve_neg".split()
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float64]
DROPOUTS = "dropout feature_dropout alpha_dropout feature_alpha_dropout".split()
HALVES = tensor([0.0, 0.5, 1.5, 2.7, 99.9, 1.0])
OUTSIDE = [-7.5, -1.0, 0.9, 300.7, -300.2, 40000.5, -40000.0]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


CASES = [
    *(case(name, lambda x, n=name: getattr(aten, n)(x) + 1, randn(2, 3)) for name in SAME),
    case("contiguous", lambda x: x.t().contiguous() + 1, randn(2, 3)),
    case("identity", torch.nn.Identity(), randn(2, 3)),
    case("the same twice", lambda x: (x, x, x + 1), randn(2, 3)),
    *(case(name, lambda x, n=name: getattr(aten, n)(x, 0.5, False) + 1, randn(2, 3)) for name in DROPOUTS),
    *(
        case(f"{name} in training", lambda x, n=name: getattr(aten, n)(x, 0.5, True), randn(2, 3)).refused(
            "training mode"
        )
        for name in DROPOUTS
    ),
    case("dropout of nothing in training", F.dropout, randn(2, 3), 0.0, True),
    case("clone to other strides", lambda x: x.t().clone(memory_format=torch.contiguous_format) + 1, randn(2, 3)),
    case("strides of a copy", lambda x: x.t().contiguous().as_strided((2, 2), (3, 1)), randn(3, 2)),
    *(case(f"to {_name(d)}", lambda x, d=d: x.to(d), HALVES) for d in DTYPES),
    *(case(f"from {_name(d)}", lambda x: x.to(torch.float32), randint(0, 2, 3, 4, dtype=d)) for d in DTYPES),
    case("to int of negatives", lambda x: x.to(torch.int64), tensor([-0.5, -1.5, -2.7, -99.9])),
    *(
        case(f"{_name(s)} to {_name(d)} out of range", lambda x, d=d: x.to(d), tensor(OUTSIDE, s))
        for s in (torch.float16, torch.float32, torch.float64)
        for d in (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.uint64)
    ),
    case("to uint8 of integers wraps", lambda x: x.to(torch.uint8), tensor([-1, 256, 300, 7])),
    case("to bool of fractions", lambda x: x.bool(), tensor([0.0, -0.0, 0.1, -3.0])),
    case("to bool of float16", lambda x: x.bool(), tensor([0.0, -0.0, 0.1, -3.0], torch.float16)),
    case("float of bool", lambda x: x.float() * 2, bools(2, 3)),
    case("_to_copy", lambda x: aten._to_copy(x, dtype=torch.int32), uniform(-9, 9, 4)),
    case("type_as", lambda x, y: x.type_as(y) + y, randn(3), randint(-9, 9, 3)),
    case("convert_element_type", lambda x: prims.convert_element_type(x, torch.int64), uniform(-9, 9, 4)),
]
