"""The sizes that an archive is judged at."""

from __future__ import annotations

import random
from collections.abc import Sequence

from conformance.fuzz.program import Program, Sizes, numbers_in

MOST_SIZES = 16
LARGE = 61
"""Beyond every bound that a generated model is written with, apart from tables of positions."""
_ALWAYS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40)
_LARGEST_IMAGE = 16


def judged_sizes(program: Program) -> list[Sizes]:
    """Return the sizes to judge, the example's first; each symbol runs through its own, all differ from each other."""
    symbols = program.symbols
    rng = random.Random(program.seed)
    found: list[Sizes] = [dict(program.example)]
    lists = {s: _candidates(program, s, rng) for s in symbols}
    for index in range(max((len(c) for c in lists.values()), default=0)):
        sizes = {}
        for place, s in enumerate(symbols):
            candidates = lists[s]
            sizes[s] = candidates[(index + 3 * place) % len(candidates)]
        if sizes not in found:
            found.append(sizes)
    return found[:MOST_SIZES]


def _candidates(program: Program, symbol: str, rng: random.Random) -> list[int]:
    traced = program.example[symbol]
    if symbol == "B":
        return list(dict.fromkeys([1, 2, traced, traced + 1, 3, 5]))
    wanted = [1, 2, LARGE, traced + 1, traced - 1]
    limit = LARGE
    if "W" in program.symbols:
        wanted, limit = [1, 2, 13, traced + 1, traced - 1], _LARGEST_IMAGE
    near = _near_thresholds(program, traced)
    rng.shuffle(near)
    wanted += near[:7]
    usual = list(_ALWAYS)
    rng.shuffle(usual)
    wanted += usual
    return [n for n in dict.fromkeys(wanted) if 1 <= n <= limit][:MOST_SIZES]


def _near_thresholds(program: Program, traced: int) -> list[int]:
    """Return the numbers in the model and both their neighbours; those where a decision may turn the other way."""
    numbers: Sequence[int] = [n for n in numbers_in(program.steps) if 2 <= n <= 64]
    return [n for number in numbers for n in (number - 1, number, number + 1) if n != traced]
