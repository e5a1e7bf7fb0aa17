"""Order statistics."""

from __future__ import annotations

import torch

from tests.contract.cases import case, randint, randn, tensor, weight
from tests.contract.cases.reduction import HOLES

MEDIANS = "median nanmedian".split()
QUANTILES = "quantile nanquantile".split()
SHARES = weight(tensor([0.0, 0.5, 1.0]))
MODES = "linear lower higher nearest midpoint".split()

CASES = [
    case("medians of dynamic axes", lambda x: (x.median(), x.median(1), x.nanmedian(0)), randn(4, 7)).dynamic(
        {0: {0: "B", 1: "T"}}
    ),
    case(
        "median of a dynamic axis with NaN", lambda x: torch.where(x > 1, torch.nan, x).median(1), randn(4, 7)
    ).dynamic({0: {1: "T"}}),
    case("median of dynamic integers", lambda x: x.median(0), randint(-9, 9, 6, 3)).dynamic({0: {0: "T"}}),
    *(case(name, getattr(torch, name), randn(3, 5)) for name in MEDIANS),
    *(case(f"{name} of an even number", getattr(torch, name), randn(4, 5)) for name in MEDIANS),
    *(case(f"{name} of an axis", getattr(torch, name), randn(4, 5, 3), 0) for name in MEDIANS),
    *(case(f"{name} keeps the axis", getattr(torch, name), randn(4, 5, 3), 1, True) for name in MEDIANS),
    *(case(f"{n} with holes", lambda x, n=n: getattr(torch, n)(x, 1)[0], HOLES) for n in MEDIANS),
    *(case(f"{n} of integers", lambda x, n=n: getattr(torch, n)(x, 1)[0], randint(-9, 9, 3, 6)) for n in MEDIANS),
    *(case(f"{name} of rank 0", getattr(torch, name), randn(), 0) for name in MEDIANS),
    *(case(name, getattr(torch, name), randn(3, 5), 0.3) for name in QUANTILES),
    *(case(f"{n} {m}", getattr(torch, n), randn(4, 6), 0.37, 1, interpolation=m) for n in QUANTILES for m in MODES),
    *(case(f"{n} of several", getattr(torch, n), randn(4, 6, 2), SHARES, 1) for n in QUANTILES),
    *(case(f"{n} keeps the axis", getattr(torch, n), randn(4, 6), tensor([0.1, 0.9]), 0, True) for n in QUANTILES),
    *(case(f"{n} with holes", getattr(torch, n), HOLES, 0.4, 1) for n in QUANTILES),
    *(case(f"{n} dynamic", getattr(torch, n), randn(4, 6), 0.4, 1).dynamic({0: {0: "B", 1: "T"}}) for n in QUANTILES),
    case("quantile between two elements, dynamic", torch.quantile, randn(4, 6), 0.5, 1).dynamic({0: {0: "B", 1: "T"}}),
]
