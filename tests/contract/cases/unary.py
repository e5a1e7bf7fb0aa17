"""Functions of one tensor."""

from __future__ import annotations

import torch

from tests.contract.cases import bools, case, corners, randint, randn, tensor, uniform

prims = torch.ops.prims
WIDE = "exp sin cos tan atan sinh cosh asinh tanh sigmoid erf erfc expm1 exp2 deg2rad rad2deg sinc abs neg".split()
WIDE += "sign sgn square floor ceil trunc frac round isnan isinf isposinf isneginf isfinite isreal".split()
WIDE += ["signbit", "logical_not"]
POSITIVE = "log log1p log2 log10 sqrt rsqrt reciprocal special_entr".split()
INSIDE = "asin acos atanh erfinv".split()
KEEPS_FLOATS = {"frac"}
ALIASES = (
    "arcsin arccos arctan arctanh arcsinh arccosh absolute negative fix special_expit special_erf special_erfc".split()
)
ALIASES += "special_log1p special_expm1 special_exp2 special_sinc special_erfinv special_round special_logit".split()
PRIMS = (
    "exp log sin cos tan asin acos atan sinh cosh asinh acosh atanh sqrt rsqrt tanh reciprocal erf erfc log1p".split()
)
PRIMS += "expm1 exp2 log2 log10 erf_inv abs neg sign floor ceil trunc round isfinite".split()

CASES = [
    *(case(name, getattr(torch, name), randn(3, 4, scale=3)) for name in WIDE),
    *(case(f"{name} of corners", getattr(torch, name), corners()) for name in WIDE if name not in ("sigmoid", "tanh")),
    *(case(name, getattr(torch, name, None) or torch.special.entr, uniform(0.01, 9, 3, 4)) for name in POSITIVE),
    *(case(f"{n} of corners", getattr(torch, n, None) or torch.special.entr, corners()) for n in POSITIVE),
    *(case(name, getattr(torch, name), uniform(-1, 1, 3, 4)) for name in INSIDE),
    *(case(f"{name} of corners", getattr(torch, name), corners()) for name in (*INSIDE, "acosh")),
    case("acosh", torch.acosh, uniform(1, 9, 3, 4)),
    *(case(f"{name} of float16", getattr(torch, name), randn(3, 4, dtype=torch.float16)) for name in WIDE),
    *(case(f"{name} of float64", getattr(torch, name), randn(3, 4, dtype=torch.float64)) for name in WIDE),
    *(case(f"{n} of int64", getattr(torch, n), randint(-5, 6, 3, 4)) for n in WIDE if n not in KEEPS_FLOATS),
    *(
        case(f"{n} of uint8", getattr(torch, n), randint(0, 250, 3, 4, dtype=torch.uint8))
        for n in ("neg", "sign", "abs")
    ),
    *(case(f"{n} of int32", getattr(torch, n), randint(-5, 6, 3, dtype=torch.int32)) for n in ("sign", "exp", "floor")),
    *(case(f"{n} of bool", getattr(torch, n), bools(3, 4)) for n in ("exp", "sign", "isnan", "signbit", "logical_not")),
    *(case(f"{n} in place", lambda x, n=n: getattr(x.clone(), f"{n}_")(), randn(3, 4)) for n in ("exp", "abs", "neg")),
    *(
        case(
            name, getattr(torch, name, None) or getattr(torch.special, name.removeprefix("special_")), uniform(0, 1, 9)
        )
        for name in ALIASES
    ),
    *(case(f"prims.{name}", getattr(prims, name), uniform(0.01, 0.99, 7)) for name in PRIMS),
    case("prims.acosh above 1", prims.acosh, uniform(1, 5, 7)),
    case("round halves", torch.round, tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 8388609.0, 1e10])),
    case("round halves of float64", torch.round, tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e15], torch.float64)),
    case("round decimals", torch.round, randn(20, scale=10), decimals=2),
    case("round tens", torch.round, randn(20, scale=1000), decimals=-2),
    case("round integers", torch.round, randint(-9, 9, 4), decimals=-1).refused("rounding integers"),
    case("sign of zeros", torch.sign, tensor([0.0, -0.0, 3, -3])),
    case("bitwise_not", torch.bitwise_not, randint(-9, 9, 3, 4)),
    case("bitwise_not of bool", torch.bitwise_not, bools(3, 4)),
    case("prims.bitwise_not", prims.bitwise_not, randint(-9, 9, 3, 4)),
    case("nan_to_num", torch.nan_to_num, corners()),
    case("nan_to_num with numbers", torch.nan_to_num, corners(), nan=1.5, posinf=9.0, neginf=-7.0),
    case("nan_to_num of float16", torch.nan_to_num, corners(torch.float16)),
    case("nan_to_num of integers", lambda x: torch.nan_to_num(x) + 1, randint(-9, 9, 4)),
    case("logit", torch.logit, uniform(0.01, 0.99, 3, 4)),
    case("logit eps", torch.logit, uniform(-0.2, 1.2, 3, 4), eps=0.1),
    case("log1p of small numbers", torch.log1p, uniform(-1e-5, 1e-5, 20)).at("close"),
    case("expm1 of small numbers", torch.expm1, uniform(-1e-5, 1e-5, 20)).at("close"),
    case("sinc of small numbers", torch.sinc, tensor([1e-45, -1e-42, 3e-39, 1e-38, -2e-38, 1e-30, 1e-9])),
    case("sinc of small float16", torch.sinc, tensor([6e-8, -2e-5, 1e-4], torch.float16)),
    case("rank 0", torch.exp, randn()),
    case("square of booleans", torch.square, bools(3, 4)),
    case("dynamic", lambda x: torch.exp(x).abs().floor(), randn(4, 3)).dynamic({0: {0: "B"}}),
]
