"""Differences of neighbours, the most frequent value, histograms, segments, divisors, views by strides."""

from __future__ import annotations

import torch

from tests.contract.cases import bools, case, randint, randn, tensor, uniform

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
    case("bincount with a length", lambda x: torch.bincount(x, minlength=8), randint(0, 8, 20)).dynamic({0: {0: "T"}}),
    case("bincount with weights", lambda x, w: x.bincount(w, minlength=5), randint(0, 5, 20), randn(20)),
    case("bincount without a length", torch.bincount, randint(0, 8, 20)).refused("depends on its data"),
    case("nonzero_static", torch.nonzero_static, bools(2, 3, 5), size=7),
    case("nonzero_static of few", torch.nonzero_static, randint(0, 2, 9), size=12, fill_value=-3),
    case("nonzero_static of floats", lambda x: torch.nonzero_static(x.round(), size=4), uniform(-1, 1, 3, 4)),
    case("nonzero_static of any size", torch.nonzero_static, bools(3, 5), size=4).dynamic({0: {0: "B", 1: "T"}}),
    *(
        case(
            f"segment_reduce {kind}{start}",
            torch.segment_reduce,
            randn(7, 3),
            kind,
            lengths=tensor(lengths),
            initial=start,
        )
        for kind in ("sum", "mean", "max", "min", "prod")
        for start, lengths in ((None, [3, 1, 3]), (0.5, [3, 0, 4]))
    ),
    case("segment_reduce of rows", torch.segment_reduce, randn(2, 5), "sum", lengths=tensor([[2, 3], [4, 1]]), axis=1),
    case("segment_reduce of offsets", torch.segment_reduce, randn(6, 2), "max", offsets=tensor([0, 2, 5, 6])),
    case(
        "segment_reduce of any size", torch.segment_reduce, randn(7, 3), "sum", lengths=tensor([3, 1, 3]), unsafe=True
    ).dynamic({0: {1: "C"}}),
    *(
        case(
            f"{name} of {dtype}".replace("torch.", ""),
            getattr(torch, name),
            *(randint(low, 99, 5, 7, dtype=dtype) for _ in "ab"),
        )
        for name in ("gcd", "lcm")
        for dtype, low in ((torch.int64, -99), (torch.int32, -99), (torch.int16, -99))
    ),
    case("gcd of zeros", torch.gcd, tensor([0, 0, -6, 6, 12, -4]), tensor([0, 5, 0, -4, 18, -6])),
    case("lcm of zeros", torch.lcm, tensor([0, 0, -6, 6, 12, -4]), tensor([0, 5, 0, -4, 18, -6])),
    case(
        "gcd of neighbouring Fibonacci numbers",
        torch.gcd,
        tensor([4660046610375530309, 75025]),
        tensor([7540113804746346429, 46368]),
    ),
    *(
        case(
            f"gcd of the least {dtype}".replace("torch.", ""),
            torch.gcd,
            tensor([low, low, -1, low, 6, low, 0], dtype),
            tensor([-1, 1, low, 6, low, low, low], dtype),
        )
        for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
        for low in [torch.iinfo(dtype).min]
    ),
    case("gcd of varying length", torch.gcd, randint(-9, 9, 5, 3), randint(-9, 9, 3)).dynamic({0: {0: "T"}}),
    case("resize_as_", lambda x, like: (x + 1).resize_as_(like), randn(4, 5), randn(3, 2, 3)),
    case("resize_", lambda x: x.clone().resize_(2, 7), randn(3, 5)),
    case("resize", lambda x: torch.ops.aten.resize(x + 1, [2, 7]), randn(3, 5)),
    case("resize_ that grows", lambda x: x.clone().resize_(4, 7), randn(3, 5)).refused(
        "a tensor that grows|resize a view tensor to a larger size"
    ),
    case("as_strided", torch.as_strided, randn(4, 5), (2, 3), (6, 2), 1),
    case("as_strided_copy", torch.as_strided_copy, randn(20), (3, 4), (1, 5)),
    case("as_strided_scatter", torch.as_strided_scatter, randn(4, 5), randn(2, 3), (2, 3), (6, 2), 1),
    case("as_strided of a view", lambda x: x.T.as_strided((2, 3), (1, 2)), randn(4, 5)).refused("itself a view"),
]
