"""Differences of neighbours, the most frequent value, histograms, views by strides."""

from __future__ import annotations

import torch

from tests.contract.cases import bools, case, randint, randn, uniform

CASES = [
    case("mode of a dynamic axis", lambda x: torch.mode(x, 1)[0], randint(0, 4, 3, 9)).dynamic({0: {0: "B", 1: "T"}}),
    case("mode of booleans", torch.mode, bools(3, 7), 1),
    case("diff", torch.diff, randn(3, 5)),
    case("diff twice", torch.diff, randint(-9, 9, 5, 3), n=2, dim=0),
    case("diff of bool", torch.diff, bools(3, 5)),
    case("diff with ends", lambda x, p, a: torch.diff(x, prepend=p, append=a), randn(3, 5), randn(3, 2), randn(3, 1)),
    case("diff none", lambda x, p: torch.diff(x, n=0, prepend=p), randn(3, 5), randn(3, 2)),
    case("diff along a dynamic axis", lambda x: x.diff(dim=1), randn(2, 5)).dynamic({0: {1: "T"}}),
    case("diff of what is empty at first", lambda x: x[:, : max(x.shape[1] - 4, 0)].diff(dim=1), randn(2, 3)).dynamic(
        {0: {1: "T"}}
    ),
    case("diff of varying length", torch.diff, randn(2, 5)).dynamic({0: {0: "B"}}),
    case("mode", torch.mode, randint(0, 4, 3, 9)),
    case("mode keepdim", torch.mode, randint(0, 3, 7, 3, dtype=torch.int32), dim=0, keepdim=True),
    case("mode of floats", lambda x: torch.mode(x.round()), uniform(0, 3, 4, 8)),
    case("mode of varying length", torch.mode, randn(2, 5)).dynamic({0: {1: "T"}}),
    case("histc", torch.histc, uniform(-3, 9, 50), bins=7, min=-1, max=5),
    case("histc of varying length", torch.histc, uniform(-3, 9, 50), bins=7, min=-1, max=5).dynamic({0: {0: "T"}}),
    case("histc of all", torch.histc, randn(4, 5), bins=6),
    case("as_strided", torch.as_strided, randn(4, 5), (2, 3), (6, 2), 1),
    case("as_strided_copy", torch.as_strided_copy, randn(20), (3, 4), (1, 5)),
    case("as_strided_scatter", torch.as_strided_scatter, randn(4, 5), randn(2, 3), (2, 3), (6, 2), 1),
    case("as_strided of a view", lambda x: x.T.as_strided((2, 3), (1, 2)), randn(4, 5)).refused("a view itself"),
]
