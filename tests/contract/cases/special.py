"""Special functions that are decomposed into series."""

from __future__ import annotations

import torch

from tests.contract.cases import case, randn, tensor, uniform

special = torch.special
NEAR = "bessel_j0 bessel_j1 i0e i1 i1e modified_bessel_i0 modified_bessel_i1".split()
NEAR += "airy_ai spherical_bessel_j0 log_ndtr".split()
POSITIVE = "bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1".split()
POSITIVE += "scaled_modified_bessel_k0 scaled_modified_bessel_k1".split()
POLYNOMIALS = [f"{s}chebyshev_polynomial_{letter}" for s in ("", "shifted_") for letter in "tuvw"]
EDGES = tensor([0.0, -0.0, 1e-20, 1.0, -1.0, 2.0, 6.0, -6.0, 8.0, -8.0, 30.0, -30.0, 1e4, float("nan")])
ORDERS = tensor([[-2.0], [0.0], [1.0], [2.0], [3.7], [6.0], [8.0]])
INSIDE = tensor([-2.5, -1.0, -0.7, 0.0, 0.3, 1.0, 1.8])

CASES = [
    case("angle", torch.angle, randn(3, 5)),
    case("lgamma", torch.lgamma, uniform(0.3, 4.0, 3, 5)),
    case("gammaln", torch.special.gammaln, uniform(0.3, 4.0, 3, 5)),
    case("digamma of special", torch.special.digamma, uniform(0.3, 4.0, 3, 5)),
    case("primitive digamma", torch.ops.prims.digamma.default, uniform(0.3, 4.0, 3, 5)),
    case("primitive lgamma", torch.ops.prims.lgamma.default, uniform(0.3, 4.0, 3, 5)),
    *(case(name, getattr(special, name), uniform(-20, 20, 5, 40)) for name in NEAR),
    *(case(name, getattr(special, name), uniform(0, 20, 5, 40)) for name in POSITIVE),
    *(case(f"{name} edges", getattr(special, name), EDGES) for name in (*NEAR, *POSITIVE) if name != "airy_ai"),
    case("i0", torch.i0, uniform(-20, 20, 50)),
    case("i0 of float16", torch.i0, uniform(-5, 5, 20, dtype=torch.float16)),
    case("i0 of varying length", torch.i0, randn(5)).dynamic({0: {0: "N"}}),
    case("erfcx", special.erfcx, uniform(-5, 30, 50)),
    case("erfcx edges", special.erfcx, tensor([0.0, 1e-20, 1e4, 1e30, -3.0, float("inf"), float("nan")])),
    case("ndtri", special.ndtri, uniform(0, 1, 50)),
    case("ndtri tails", special.ndtri, tensor([0.0, 1e-37, 1e-20, 1e-5, 0.025, 0.5, 0.975, 0.99999, 1.0, -1.0, 2.0])),
    *(case(name, getattr(special, name), INSIDE, ORDERS) for name in POLYNOMIALS),
    *(case(f"{name} of a number", getattr(special, name), INSIDE, 5) for name in POLYNOMIALS),
    *(case(f"polygamma {n}", lambda x, n=n: torch.polygamma(n, x), uniform(0.1, 9, 40)) for n in range(5)),
    *(
        case(f"polygamma {n} left", lambda x, n=n: torch.polygamma(n, x), tensor([-0.3, -0.7, -2.4, -8.6, 0.05]))
        for n in (1, 2, 3, 4)
    ),
]
