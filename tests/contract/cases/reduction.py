"""Reductions."""

from __future__ import annotations

import math

import torch

from tests.contract.cases import bools, case, randint, randn, tensor

aten, prims = torch.ops.aten, torch.ops.prims
f16, f64, i32, u8 = torch.float16, torch.float64, torch.int32, torch.uint8
DIMS = "sum mean amax amin var std logsumexp nansum nanmean any all".split()
ONE = "prod argmax argmin max min".split()
WHOLE = (
    "sum mean prod amax amin max min argmax argmin var std any all nansum nanmean aminmax count_nonzero norm".split()
)
PAIRS = "var_mean std_mean".split()
INFINITE = tensor(
    [[-math.inf] * 3, [math.inf] * 3, [1, math.nan, 3], [math.inf, 1, math.nan], [-math.inf, 2, 1], [math.nan, 1, 2]]
)
HOLES = tensor([[1.0, math.nan, 3.0], [math.nan, math.nan, -2.0], [0.0, 5.0, 4.0]])

LARGE = tensor([[2**53 + 1, -(2**53) - 1, 2**40 + 7], [-(2**62), 3, -(2**33)]])


def negative(name: str) -> object:
    return lambda x: getattr(torch, name)(x, -1, keepdim=True)


OF_NOTHING = {
    **{name: getattr(torch, name) for name in "sum nansum prod mean var logsumexp count_nonzero any all".split()},
    "vector_norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
    "sum of float16": lambda x, dim: x.half().sum(dim),
    "sum of float64": lambda x, dim: x.double().sum(dim),
    "sum of integers": lambda x, dim: x.long().sum(dim),
}

CASES = [
    *(case(f"{name} of nothing", f, randn(2, 0, 4), 1) for name, f in OF_NOTHING.items()),
    *(
        case(f"{name} of nothing at one size", lambda x, f=f: f(x[:, 1:], 1), randn(2, 5, 4)).dynamic({0: {1: "T"}})
        for name, f in OF_NOTHING.items()
    ),
    case("sum of nothing at the end", lambda x: x[..., 1:].sum(-1), randn(2, 3, 5)).dynamic({0: {2: "T"}}),
    case("trapezoid of one step", lambda x: torch.trapezoid(x, dim=1), randn(2, 5, 4)).dynamic({0: {1: "T"}}),
    *(case(f"sum of large integers over {dim}", torch.sum, LARGE, dim) for dim in (0, 1, (0, 1))),
    case("sum of large integers, dynamic", torch.sum, LARGE, 1).dynamic({0: {0: "B", 1: "T"}}),
    case("sum of int32 beyond 32 bits", torch.sum, tensor([2**30, 2**30, 5], i32), 0),
    case("sum of bytes", torch.sum, randint(0, 256, 7, 9, dtype=u8), 1).dynamic({0: {1: "T"}}),
    *(case(name, getattr(torch, name), randn(2, 3, 4)) for name in WHOLE),
    *(case(f"{name} of rank 0", getattr(torch, name), randn()) for name in ("sum", "mean", "amax", "any", "argmax")),
    *(case(f"{name} of an axis", getattr(torch, name), randn(2, 3, 4), 1) for name in (*DIMS, *ONE, *PAIRS)),
    *(case(f"{name} keeping the axis", negative(name), randn(2, 3, 4)) for name in (*DIMS, *ONE, *PAIRS)),
    *(case(f"{name} of axes", getattr(torch, name), randn(2, 3, 4), (0, -1)) for name in (*DIMS, *PAIRS)),
    *(case(f"{n} of float16", getattr(torch, n), randn(9, 40, dtype=f16), 1) for n in (*DIMS, *ONE)),
    *(case(f"{n} of float64", getattr(torch, n), randn(9, 40, dtype=f64), 1) for n in (*DIMS, *ONE)),
    *(
        case(f"{n} of int64", getattr(torch, n), randint(-5, 6, 3, 7), 1)
        for n in "sum prod amax amin any all max argmin".split()
    ),
    *(
        case(f"{n} of bool", getattr(torch, n), bools(3, 7), 1)
        for n in "sum prod amax amin any all count_nonzero".split()
    ),
    *(case(f"{n} dynamic", getattr(torch, n), randn(4, 5), 1).dynamic({0: {0: "B", 1: "T"}}) for n in (*DIMS, *ONE)),
    *(case(f"{n} of all, dynamic", getattr(torch, n), randn(4, 5)).dynamic({0: {0: "B", 1: "T"}}) for n in WHOLE),
    case("sum of int32", torch.sum, randint(-5, 6, 3, 7, dtype=i32), 1),
    case("sum of uint8", torch.sum, randint(0, 250, 3, 70, dtype=u8), 1),
    case("sum dtype", lambda x: x.sum(0, dtype=f64), randn(3, 7)),
    case("sum of no axes", lambda x: torch.sum(x, ()), randn(3, 7)),
    case("mean dtype", lambda x: x.mean(0, dtype=torch.float32), randint(-9, 9, 3, 7)),
    case("prod dtype", lambda x: x.prod(0, dtype=f64), randn(3, 7)),
    case("sum as bool", lambda x: x.sum(1, dtype=torch.bool), randint(0, 2, 9, 3)),
    case("prod as bool", lambda x: x.prod(1, dtype=torch.bool), randint(0, 2, 9, 2)),
    case("nansum with holes", torch.nansum, HOLES, 1),
    case("nansum of integers", torch.nansum, randint(-9, 9, 3, 7), 1),
    case("nanmean with holes", torch.nanmean, HOLES, 1),
    case("any of NaN", torch.any, HOLES, 1),
    case("any of uint8", torch.any, randint(0, 2, 3, 7, dtype=u8), 1),
    *(case(f"{n} of infinities and NaN", getattr(torch, n), INFINITE, 1) for n in (*ONE, "amax", "amin", "logsumexp")),
    *(case(f"{n} of -inf", getattr(torch, n), tensor([-math.inf, -math.inf])) for n in ("max", "amin", "argmax")),
    case("ties", torch.max, randint(0, 3, 5, 20), 1),
    case("ties of min", torch.min, randint(0, 3, 5, 20), 1),
    case("argmax of bool", lambda x: torch.argmax(x.int(), 1), bools(5, 9)),
    case("aminmax of an axis", lambda x: torch.aminmax(x, dim=1, keepdim=True), randn(3, 4)),
    case("count_nonzero of an axis", torch.count_nonzero, randint(-1, 2, 3, 7), 1),
    case("var correction", torch.var, randn(3, 7), 1, correction=2),
    case("var biased", torch.var, randn(3, 7), 1, unbiased=False),
    case("var of one element", torch.var, randn(3, 1), 1),
    case("std fraction", torch.std, randn(3, 7), 1, correction=0.5),
    case("var far from zero", lambda x: torch.var(x + 1000, 1), randn(3, 9)),
    case("std dynamic biased", torch.std, randn(3, 7), 1, unbiased=False).dynamic({0: {1: "T"}}),
    case(
        "logsumexp of infinities", lambda x: torch.logsumexp(x, 1), tensor([[-math.inf] * 2, [math.inf, 1], [900, 1]])
    ),
    case("special_logsumexp", torch.special.logsumexp, randn(3, 7), (0, 1)),
    *(
        case(f"vector_norm {n}", torch.linalg.vector_norm, randn(3, 7), n, 1)
        for n in (0, 1, 2, 3, 0.5, -2, math.inf, -math.inf)
    ),
    case("vector_norm of all", torch.linalg.vector_norm, randn(3, 7)),
    case("vector_norm of rank 0", torch.linalg.vector_norm, randn()),
    case("norm of axes", torch.norm, randn(3, 4, 5), dim=(0, 2), keepdim=True),
    case("norm p", torch.norm, randn(3, 4), p=3.0),
    case("aten.norm", aten.norm.ScalarOpt_dim, randn(3, 4), None, [1]),
    case("aten.norm p", aten.norm.Scalar, randn(3, 4), 1.0),
    case("dist", torch.dist, randn(3, 4), randn(4), 3.0),
    *(case(f"prims.{n}", getattr(prims, n), randn(3, 4, 5), [0, 2]) for n in "sum prod amax amin".split()),
    case("prims.var", prims.var, randn(3, 4, 5), [0, 2], 0),
]
