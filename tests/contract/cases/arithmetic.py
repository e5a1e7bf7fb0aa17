"""Arithmetic of two and three tensors."""

from __future__ import annotations

import math

import torch

from tests.contract.cases import bools, case, corners, randint, randn, tensor, uniform, weight

prims = torch.ops.prims
aten = torch.ops.aten
f16, f64, i8, i32, u8 = torch.float16, torch.float64, torch.int8, torch.int32, torch.uint8
PLAIN = (
    "add sub mul div maximum minimum fmax fmin atan2 hypot copysign xlogy logaddexp logaddexp2 fmod remainder".split()
)
PLAIN += "floor_divide true_divide heaviside".split()
INTEGER = "add sub mul div maximum minimum fmax fmin fmod remainder floor_divide true_divide atan2 copysign".split()
ALIASES = {"subtract": "sub", "multiply": "mul", "divide": "div", "arctan2": "atan2"}
PRIMS = "add sub mul div fmod remainder pow maximum minimum fmax fmin atan2 hypot".split()
GRID = [-math.inf, -2.5, -1.0, -0.0, 0.0, 1.0, 3.0, math.inf, math.nan]
LEFT = tensor([a for a in GRID for _ in GRID])
RIGHT = tensor([b for _ in GRID for b in GRID])
INFINITE = tensor([a for a in GRID[:-1] for _ in GRID[:-1]])
OTHER_INFINITE = tensor([b for _ in GRID[:-1] for b in GRID[:-1]])
EXTREMES = ("maximum", "minimum", "hypot")
SIGNED = list(range(-21, 20))
HALVES = (
    tensor([194.625, 231.75, -228.5, 95.25], f16),
    tensor([1.041015625, 1.7294921875, 1.5439453125, 1.0029296875], f16),
)
NONZERO = tensor([-7, -3, -2, -1, 1, 2, 3, 4, 7])
BATCH = {0: {0: "B"}}
IN_PLACE = {name: getattr(torch, name) for name in "add sub mul div maximum minimum".split()}


def truncated(x: torch.Tensor, y: torch.Tensor | int) -> torch.Tensor:
    """The quotient towards zero."""
    return torch.div(x, y, rounding_mode="trunc")


def rows_apart(x: torch.Tensor) -> torch.Tensor:
    """The same, computed with batch and time as one axis."""
    return x.flatten(0, 1).sin().reshape_as(x)


OUT_OF_RANGE = {
    "add": lambda x: x + (-1), "mul": lambda x: x * -1, "gt": lambda x: x > -1, "lt": lambda x: x < 300,
    "eq": lambda x: x == 300, "where": lambda x: torch.where(x > 3, x, -1),
    "masked_fill": lambda x: x.masked_fill(x > 3, -1),
    "full_like": lambda x: torch.full_like(x, -1) + x, "new_full": lambda x: x.new_full((2, 5), -1) - x,
    "div": lambda x: x.div(-1), "floor div": lambda x: (x + 1) // 300, "remainder": lambda x: x % 300,
    "clamp": lambda x: x.clamp(max=-1), "add alpha": lambda x: torch.add(x, 3, alpha=-1),
    "isin": lambda x: torch.isin(x, -1),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([2]), -1),
    "scatter": lambda x: x.scatter(0, torch.tensor([1]), -1),
}  # fmt: skip
"""Functions of a tensor of uint8 with numbers that wrap around."""

CASES = [
    case("reciprocal, twice", lambda x: (x.reciprocal(), 1 / x, 3 / x), randn(3, 4)),
    case("powers of integers, twice", lambda x: (x**2, x**3, x**2 - 1), randint(-9, 9, 3, 4)),
    case("quotients of integers, twice", lambda x: (x // 7, x % 7, x // 7 + x % 7), randint(-9, 9, 3, 4)),
    *(case(name, getattr(torch, name), randn(3, 4), randn(4)) for name in PLAIN),
    *(case(f"{name} of corners", getattr(torch, name), LEFT, RIGHT) for name in PLAIN if name not in EXTREMES),
    *(case(f"{name} of corners, with NaN", getattr(torch, name), LEFT, RIGHT).keeping_nan() for name in EXTREMES),
    *(case(f"{name} of infinities", getattr(torch, name), INFINITE, OTHER_INFINITE) for name in EXTREMES),
    *(case(f"{name} of int64", getattr(torch, name), randint(-20, 21, 7, 9), NONZERO) for name in INTEGER),
    *(case(f"{n} of float16", getattr(torch, n), randn(3, 4, dtype=f16), randn(3, 1, dtype=f16)) for n in PLAIN),
    *(case(f"{n} of float64", getattr(torch, n), randn(3, 4, dtype=f64), randn(3, 1, dtype=f64)) for n in PLAIN),
    *(case(f"{n} promotes", getattr(torch, n), randint(-9, 9, 3, 4), uniform(0.5, 2, 4)) for n in INTEGER),
    *(case(n, getattr(torch, n), randn(3, 4), randn(3, 4)) for n in ALIASES),
    *(case(f"prims.{name}", getattr(prims, name), uniform(0.1, 5, 3, 4), uniform(0.1, 2, 3, 4)) for name in PRIMS),
    case("hypot large", torch.hypot, tensor([3e20, -1.0, 0.0, 3e-30]), tensor([4e20, 0.0, 0.0, -4e-30])),
    case("add alpha", torch.add, randn(2, 3), randn(3), alpha=0.3),
    case("add integers alpha", torch.add, randint(-9, 9, 2, 3), randint(-9, 9, 3), alpha=-3),
    case("add number", lambda x: x + 2, randint(-9, 9, 2, 3)),
    case("add float to integers", lambda x: x + 2.5, randint(-9, 9, 2, 3)),
    case("add booleans", torch.add, bools(4, 5), bools(5)),
    case("add bool and integer", torch.add, bools(4, 5), randint(-4, 5, 5)),
    case("add rank 0", torch.add, randn(2, 3), tensor(3)),
    case("add rank 0 of float64", torch.add, randn(2, 3), tensor(3.25, f64)),
    case("add infinite number", lambda x: x + math.inf, randn(3)),
    case("add in place", lambda x, y: x.clone().add_(y), randn(2, 3), randn(3)),
    case("broadcast both", torch.add, randn(2, 1, 4), randn(3, 1, 5, 1)),
    case("sub alpha", torch.sub, randn(2, 3), randn(3), alpha=2),
    case("sub of uint8 wraps", torch.sub, randint(0, 9, 9, dtype=u8), randint(0, 99, 9, dtype=u8)),
    case("mul of uint8 wraps", torch.mul, randint(0, 99, 9, dtype=u8), randint(0, 99, 9, dtype=u8)),
    *(
        case(f"{name} of uint8, with numbers out of range", function, tensor([0, 3, 44, 200, 255], u8))
        for name, function in OUT_OF_RANGE.items()
    ),
    case("sub of int32, with a number out of range", lambda x: x - 2**31, randint(-9, 9, 7, dtype=i32)),
    case("gt of int32, with a number out of range", lambda x: x > 2**31, randint(-9, 9, 7, dtype=i32)),
    case("mul with itself", lambda x: x * x, randint(-9, 9, 9)),
    case("mul with itself of uint8", lambda x: x * x, randint(0, 99, 9, dtype=u8)),
    case("mul booleans", torch.mul, bools(4, 5), bools(5)),
    case("rsub", torch.rsub, randn(2, 3), randn(3), alpha=2),
    case("rsub number", lambda x: 2 - x, randint(-9, 9, 4)),
    case("sub of a mean", lambda x: (x - x.mean()) / x.std(), randn(3, 4)),
    case("sub of a mean dynamic", lambda x: (x - x.mean()) / x.std(), randn(3, 4)).dynamic({0: {1: "T"}}),
    case("div trunc", torch.div, randn(3, 4, scale=9), randn(4), rounding_mode="trunc"),
    case("div floor", torch.div, randn(3, 4, scale=9), randn(4), rounding_mode="floor"),
    case("div trunc of int64", torch.div, randint(-20, 21, 7, 9), NONZERO, rounding_mode="trunc"),
    case("div floor of int64", torch.div, randint(-20, 21, 7, 9), NONZERO, rounding_mode="floor"),
    case("div floor of uint8", lambda x: x // 7, randint(0, 250, 9, dtype=u8)),
    *(
        case(f"{name} by {n} of {d}", f, randint(0, 250, 9, dtype=u8) if d == u8 else tensor(SIGNED, d), n)
        for d in (i8, torch.int16, i32, torch.int64, u8)
        for n in (2, 3, 64)
        for name, f in (("div trunc", truncated), ("fmod", torch.fmod))
    ),
    case("div trunc by powers", truncated, tensor(SIGNED), weight(tensor([[4], [8], [-2]]))),
    case("div trunc by a tensor of one power", truncated, tensor(SIGNED), weight(tensor([4]))),
    case("div trunc by a full tensor", lambda x: truncated(x, torch.full_like(x, 4)), tensor(SIGNED)).dynamic(
        {0: {0: "B"}}
    ),
    case("div trunc of what halves round to a whole number", truncated, *HALVES),
    case("div trunc of the least", truncated, tensor([-128, -127, 127, -1, 0], i8), 32),
    case("div by number", lambda x: x / 3, randint(-9, 9, 9)),
    case("number by tensor", lambda x: 3 / x, randn(9)),
    case("remainder of number", lambda x: torch.remainder(10, x), NONZERO),
    case("remainder tenth", lambda x: torch.remainder(x, 0.1), tensor([1.0, -1.0, 0.3, 7.7, 1000.0])),
    case("remainder of int32", lambda x: x % -3, randint(-20, 21, 9, dtype=i32)),
    case("floor_divide tenth", lambda x: x // 0.1, tensor([1.0, -1.0, 0.3, 7.7, 1000.0])),
    case("pow", torch.pow, uniform(0, 3, 3, 4), randn(4)),
    case("pow of corners", torch.pow, LEFT, RIGHT),
    *(case(f"pow {n}", lambda x, n=n: x**n, randn(3, 4)) for n in (0, 1, 2, 3, 4, -1, -2, 2.5)),
    *(case(f"pow {n} of positive", lambda x, n=n: x**n, uniform(0.1, 3, 9)) for n in (0.5, -0.5, 1.5)),
    *(case(f"pow {n} of integers", lambda x, n=n: x**n, randint(-9, 9, 9)) for n in (0, 1, 2, 3, 5)),
    case("pow of int32", lambda x: x**3, randint(-9, 9, 9, dtype=i32)),
    case("pow of uint8 wraps", lambda x: x**2, randint(0, 99, 9, dtype=u8)),
    case("pow of float16", lambda x: x**2.5, uniform(0, 3, 9, dtype=f16)),
    case("number to the power", lambda x: 2**x, randn(9)),
    case("number to the power of integers", lambda x: 2**x, randint(0, 9, 9)),
    case("integers to the power", torch.pow, randint(-4, 5, 9), randint(0, 6, 9)),
    case("integers to negative powers", torch.pow, tensor([1, -1, -1, 2, 3]), tensor([-1, -2, -3, -1, 2])),
    case("float_power", torch.float_power, uniform(0, 3, 3, 4), 2.5),
    case("float_power of integers", torch.float_power, randint(1, 9, 4), randint(-3, 4, 4)),
    case("max of two", torch.max, randn(3, 4), randn(4)),
    case("min of two", torch.min, randn(3, 4), randn(4)),
    case("maximum of booleans", torch.maximum, bools(9), bools(9)),
    case("minimum of booleans", torch.minimum, bools(9), bools(9)),
    case("fmax of booleans", torch.fmax, bools(9), bools(9)),
    case("fmin of booleans", torch.fmin, bools(9), bools(9)),
    case("clamp", torch.clamp, randn(3, 4, scale=3), -1, 2),
    case("clip", torch.clip, randn(3, 4, scale=3), min=-0.5),
    case("clamp of corners, with NaN", torch.clamp, corners(), -1.5, 50).keeping_nan(),
    case("clamp of infinities", torch.clamp, INFINITE, -1.5, math.inf),
    case("clamp by NaN", lambda x: torch.clamp(x, max=math.nan), randn(4)),
    case("clamp of integers", torch.clamp, randint(-9, 9, 9), -2, 3),
    case("clamp of integers by floats", torch.clamp, randint(-9, 9, 9), -2.5, 3.5),
    case("clamp by tensors", torch.clamp, randn(3, 4), randn(4), randn(3, 1)),
    case("clamp by corners, with NaN", lambda x, y: torch.clamp(x, min=y), LEFT, RIGHT).keeping_nan(),
    case("clamp_min", torch.clamp_min, randn(9), 0.3),
    case("clamp_max", torch.clamp_max, randn(9), 0.3),
    case("clamp_min tensor", torch.clamp_min, randn(3, 4), randn(4)),
    case("copysign number", lambda x: torch.copysign(x, -2.0), randn(9)),
    case("lerp", torch.lerp, randn(3, 4), randn(4), 0.3),
    case("lerp far", torch.lerp, randn(3, 4), randn(4), 0.8),
    case("lerp tensor", torch.lerp, randn(3, 4), randn(4), uniform(-1, 2, 3, 4)),
    case("addcmul", torch.addcmul, randn(3, 4), randn(4), randn(3, 1), value=0.5),
    case("addcmul of integers", torch.addcmul, randint(-9, 9, 3, 4), randint(-9, 9, 4), randint(-9, 9, 4), value=2),
    case("addcdiv", torch.addcdiv, randn(3, 4), randn(4), uniform(1, 2, 3, 1), value=0.5),
    case(
        "logaddexp infinite",
        torch.logaddexp,
        tensor([math.inf, -math.inf, 500.0]),
        tensor([math.inf, -math.inf, 500.0]),
    ),
    case("special_xlogy", torch.special.xlogy, uniform(0, 2, 9), uniform(0, 2, 9)),
    case("xlogy number", lambda x: torch.xlogy(2, x), uniform(0, 2, 9)),
    case("special_xlog1py", torch.special.xlog1py, LEFT, RIGHT),
    case("heaviside of integers", torch.heaviside, randint(-2, 3, 9), randint(-9, 9, 9)),
    case("size as a number", lambda x: x * x.shape[0] + x.shape[1], randn(4, 3)).dynamic({0: {0: "B", 1: "T"}}),
    case("size with integers", lambda x: x + x.shape[0] * 2, randint(-4, 5, 4, 3)).dynamic({0: {0: "B"}}),
    case("dynamic broadcast", torch.add, randn(4, 3), randn(1, 3)).dynamic({0: {0: "B"}}),
    *(
        case(f"an inserted axis and {name}", lambda x, f=f: f(x[None], x.sin()[None]), randn(2, 4, 37)).dynamic(BATCH)
        for name, f in IN_PLACE.items()
    ),
    case("an inserted axis between", lambda x: x[:, None] * x.sin()[:, None], randn(2, 4, 37)).dynamic(BATCH),
    case("an inserted axis at one size", lambda x: rows_apart(x) * rows_apart(x).cos(), randn(2, 4, 37)).dynamic(BATCH),
    case(
        "an inserted axis and a product", lambda x, w: rows_apart(x) + rows_apart(x) @ w, randn(2, 4, 37), randn(37, 37)
    ).dynamic(BATCH),
    case(
        "an inserted axis and a slice", lambda x: x[None, :, :, 1:] - x[None, :, :, 1:].exp(), randn(2, 4, 37)
    ).dynamic(BATCH),
    case("an inserted axis of float16", lambda x: x[None] * x.sin()[None], randn(2, 4, 37, dtype=f16)).dynamic(BATCH),
]
