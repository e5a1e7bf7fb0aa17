"""The sizes that an archive is judged at."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from conformance.lab.fuzz.program import Program, Sizes, numbers_in

MOST_SIZES = 16
LARGE = 61
"""Beyond every bound that a generated model is written with, apart from tables of positions."""
_ALWAYS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40)
_LARGEST_IMAGE = 16
_LARGEST_BATCH = 9
_LONG = 10_000
"""A length from which on the batch has one element."""
_MOST_PAIRS, _MOST_RANDOM = 120, 60
_MOST_OF_ONE_KIND, _MOST_TURNING = 3, 12


def judged_sizes(program: Program) -> list[Sizes]:
    """Return the sizes to judge, the example's first; each symbol runs through its own, all differ from each other."""
    symbols = program.symbols
    rng = random.Random(program.seed)
    to_judge: list[Sizes] = [dict(program.example)]
    if program.lengths:
        return to_judge + [_at_length(symbols, length) for length in program.lengths]
    lists = {s: _candidates(program, s, rng) for s in symbols}
    for index in range(max((len(c) for c in lists.values()), default=0)):
        sizes = {}
        for position, s in enumerate(symbols):
            candidates = lists[s]
            sizes[s] = candidates[(index + 3 * position) % len(candidates)]
        if sizes not in to_judge:
            to_judge.append(sizes)
    to_judge = to_judge[:MOST_SIZES]
    return to_judge + [sizes for sizes in turning_sizes(program) if sizes not in to_judge]


def _at_length(symbols: Sequence[str], length: int) -> Sizes:
    """Return sizes with this one for each symbol but the batch, which has one to three elements."""
    batch = 1 + length % 3 if length < _LONG else 1
    return {s: batch if s == "B" else length for s in symbols}


def turning_sizes(program: Program) -> list[Sizes]:
    """Return sizes at which a condition of the model differs from what it is at the example's.

    PyTorch evaluates the conditions at many sizes. The exporter is not involved.
    """
    conditions = [step.name for step in program.steps if step.is_condition]
    if not conditions:
        return []
    deciding = replace(program, outputs=tuple(conditions))
    model = deciding.model()
    usual = _conditions_at(deciding, model, program.example)
    by_values: dict[tuple[bool, ...], list[Sizes]] = {}
    for sizes in _sizes_to_try(program):
        values = _conditions_at(deciding, model, sizes)
        if values is not None and values != usual:
            same = by_values.setdefault(values, [])
            if len(same) < _MOST_OF_ONE_KIND:
                same.append(sizes)
    kinds = list(by_values.values())
    random.Random(program.seed).shuffle(kinds)
    return [kind[i] for i in range(_MOST_OF_ONE_KIND) for kind in kinds if i < len(kind)][:_MOST_TURNING]


def _conditions_at(deciding: Program, model: nn.Module, sizes: Sizes) -> tuple[bool, ...] | None:
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = model(**deciding.arguments(sizes))
    except Exception:  # the model does not run at this size
        return None
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _sizes_to_try(program: Program) -> list[Sizes]:
    """Return sizes at which decisions of the model may change.

    Each size of one symbol, pairs of equal sizes, pairs whose sum, difference or product is an integer constant of the
    model, and random sizes.
    """
    example, rng = program.example, random.Random(f"turning {program.seed}")
    largest = _LARGEST_IMAGE if "W" in program.symbols else LARGE
    limit = {s: _LARGEST_BATCH if s == "B" else largest for s in example}
    to_try: list[Sizes] = [{**example, s: n} for s in example for n in range(1, limit[s] + 1)]
    for a, b in itertools.combinations(example, 2):
        for c in {0, 1, *numbers_in(program.steps)}:
            for n in range(1, min(limit[a], limit[b]) + 1):
                others = {c - n, n - c, n + c, c // n, n}
                to_try += [{**example, a: n, b: m} for m in others if 1 <= m <= limit[b]]
    pairs = to_try[sum(limit.values()) :]
    rng.shuffle(pairs)
    to_try[sum(limit.values()) :] = pairs[:_MOST_PAIRS]
    to_try += [{s: rng.randint(1, limit[s]) for s in example} for _ in range(_MOST_RANDOM)]
    return to_try


def _candidates(program: Program, symbol: str, rng: random.Random) -> list[int]:
    traced = program.example[symbol]
    if symbol == "B":
        return list(dict.fromkeys([1, 2, traced, traced + 1, 3, 5]))
    candidates = [1, 2, LARGE, traced + 1, traced - 1]
    limit = LARGE
    if "W" in program.symbols:
        candidates, limit = [1, 2, 13, traced + 1, traced - 1], _LARGEST_IMAGE
    near = _near_thresholds(program, traced)
    rng.shuffle(near)
    candidates += near[:7]
    usual = list(_ALWAYS)
    rng.shuffle(usual)
    candidates += usual
    return [n for n in dict.fromkeys(candidates) if 1 <= n <= limit][:MOST_SIZES]


def _near_thresholds(program: Program, traced: int) -> list[int]:
    """Return the constants of the model and both their neighbours, where a decision may turn the other way."""
    numbers: Sequence[int] = [n for n in numbers_in(program.steps) if 2 <= n <= 64]
    return [n for number in numbers for n in (number - 1, number, number + 1) if n != traced]
