"""Comparisons, logic, bits and choices."""

from __future__ import annotations

import torch

from tests.contract.cases import bools, case, corners, randint, randn, tensor
from tests.contract.cases.arithmetic import LEFT, RIGHT

prims = torch.ops.prims
COMPARE = "eq ne lt le gt ge".split()
ALIASES = "not_equal less less_equal greater greater_equal".split()
LOGICAL = "logical_and logical_or logical_xor".split()
BITS = "bitwise_and bitwise_or bitwise_xor".split()

CASES = [
    *(case(name, getattr(torch, name), randint(-2, 3, 3, 4), randint(-2, 3, 4)) for name in COMPARE),
    *(case(f"{name} of corners", getattr(torch, name), LEFT, RIGHT) for name in (*COMPARE, *ALIASES)),
    *(case(f"{n} of float16", getattr(torch, n), corners(torch.float16), tensor(1.5, torch.float16)) for n in COMPARE),
    *(case(f"{name} of bool", getattr(torch, name), bools(9), bools(9)) for name in COMPARE),
    *(case(f"{name} number", getattr(torch, name), randint(-2, 3, 9), 1) for name in COMPARE),
    *(case(f"{name} fraction", getattr(torch, name), randint(-2, 3, 9), 0.5) for name in COMPARE),
    *(case(f"{name} promotes", getattr(torch, name), randint(-2, 3, 9), randn(9)) for name in COMPARE),
    *(case(f"prims.{n}", getattr(prims, n), randint(-2, 3, 9), randint(-2, 3, 9)) for n in COMPARE),
    case("large integers", torch.eq, tensor([2**53, 2**53 + 1, -(2**62)]), tensor([2**53 + 1, 2**53 + 1, -(2**62)])),
    case("bool and number", lambda x: x == 1, bools(9)),
    case("rank 0 keeps float32", torch.eq, tensor([0.1, 0.2]), tensor(0.1, torch.float64)),
    *(case(name, getattr(torch, name), bools(9), bools(9)) for name in LOGICAL),
    *(case(f"{name} of numbers", getattr(torch, name), randint(-1, 2, 9), randn(9)) for name in LOGICAL),
    *(case(name, getattr(torch, name), randint(-99, 99, 3, 4), randint(-99, 99, 4)) for name in BITS),
    *(case(f"{name} number", getattr(torch, name), randint(-99, 99, 9), 12) for name in BITS),
    *(case(f"{name} of bool", getattr(torch, name), bools(9), bools(9)) for name in BITS),
    *(case(f"prims.{n}", getattr(prims, n), randint(-99, 99, 9), randint(-99, 99, 9)) for n in BITS),
    case("& and |", lambda x, y: (x & y) | (x ^ y), randint(-99, 99, 9), randint(-99, 99, 9)),
    *(case(f"__{n}__", getattr(torch.ops.aten, f"__{n}__"), randint(0, 9, 9), 3) for n in ("and", "or", "xor")),
    *(case(f"__{n}__", getattr(torch.ops.aten, f"__{n}__"), randint(-9, 9, 9), 3) for n in ("lshift", "rshift")),
    *(
        case(f"{name} shift", getattr(torch, f"bitwise_{name}_shift"), randint(-99, 99, 9), tensor([*range(7), 63, 64]))
        for name in ("left", "right")
    ),
    *(
        case(f"{n} shift number", getattr(torch, f"bitwise_{n}_shift"), randint(-99, 99, 9), 3)
        for n in ("left", "right")
    ),
    case("right shift of uint8", lambda x: x >> 2, randint(0, 250, 9, dtype=torch.uint8)),
    case("prims.shift_left", prims.shift_left, randint(-99, 99, 9), randint(0, 9, 9)),
    case("prims.shift_right_arithmetic", prims.shift_right_arithmetic, randint(-99, 99, 9), randint(0, 9, 9)),
    case("where", torch.where, bools(3, 4), randn(4), randn(3, 1)),
    case("where promotes", torch.where, bools(3, 4), randint(-9, 9, 4), randn(3, 1)),
    case("where number", lambda c, x: torch.where(c, x, 0.5), bools(3, 4), randn(3, 4)),
    case("where number first", lambda c, x: torch.where(c, 2, x), bools(3, 4), randint(-9, 9, 4)),
    case("where numbers", lambda c: torch.where(c, 2.0, 3.0), bools(3, 4)),
    case("where keeps NaN out", torch.where, bools(21), corners(), randn(21)),
    case("prims.where", prims.where, bools(9), randn(9), randn(9)),
    case("masked_fill", torch.masked_fill, randn(3, 4), bools(4), -1e9),
    case("masked_fill infinity", torch.masked_fill, randn(3, 4), bools(3, 4), float("-inf")),
    case("masked_fill tensor", torch.masked_fill, randint(-9, 9, 3, 4), bools(3, 4), tensor(7)),
    case("masked_fill of bool", torch.masked_fill, bools(3, 4), bools(3, 4), True),
    case("isclose", torch.isclose, LEFT, RIGHT, rtol=0.5, atol=0.1),
    case("isclose equal NaN", torch.isclose, LEFT, RIGHT, equal_nan=True),
    case("isclose of integers", torch.isclose, randint(-9, 9, 9), randint(-9, 9, 9), rtol=0.3),
]
