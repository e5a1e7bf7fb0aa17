"""Random models from seeds."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from conformance.lab.fuzz.draft import Draft, Rejected
from conformance.lab.fuzz.operators import DECIDING, OPERATORS, RUNNING, Operator
from conformance.lab.fuzz.program import EXPORT, INDICES, LENGTHS, MASK, SCRIPT, TRACE, Input, Program, Sizes

FEWEST_OPERATORS = 10
MOST_OPERATORS = 40
_MOST_OUTPUTS = 4
_TRIES = 60
"""Operators that are drawn for one step before a model ends early."""
_SHARE_OF_ZEROS = 0.2
_TRACED = (1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 33)
_TRACED_BATCH = (1, 1, 1, 2, 2, 3, 4)
_TRIED = ((1, 1, 1), (2, 2, 2), (2, 7, 5), (3, 16, 12), (1, 33, 3), (4, 10, 9), (2, 5, 19))
"""Sizes of the batch, of the first other symbol and of the second that every step is run at, besides the example's."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How models are drawn."""

    operators: Mapping[Operator, float]
    fewest: int
    most: int
    inputs: Callable[[random.Random], list[Input]]
    ways: Mapping[str, float]
    """Way of capture -> how often."""
    lengths: tuple[int, ...] = ()
    """Lengths to judge at besides the example, instead of the usual sizes."""


def generate(seed: int, plan: Plan | None = None) -> Program:
    """Return the model of this seed and plan: the same one on every machine and in every run."""
    plan = plan or CHAINS
    rng = random.Random(f"inputs {seed}")
    inputs = plan.inputs(rng)
    symbols = list(dict.fromkeys(d for spec in inputs for d in spec.dims if isinstance(d, str)))
    example = {s: rng.choice(_TRACED_BATCH if s == "B" else _TRACED) for s in symbols}
    if "W" in symbols:  # images: small ones
        example.update({s: min(example[s], 12) for s in "HW" if s in symbols})
    tried = [_sizes(symbols, numbers) for numbers in _TRIED]
    draft = Draft(inputs, [example, *(sizes for sizes in tried if sizes != example)], seed)
    tensor_count = min(rng.randint(plan.fewest, plan.most), rng.randint(plan.fewest, plan.most))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of empty tensors and the like
        while sum(step.is_tensor for step in draft.steps) < tensor_count:
            if not _add_one(draft, plan.operators):
                break
    way = random.Random(f"way {seed}").choices(list(plan.ways), list(plan.ways.values()))[0]
    return replace(draft.program(_outputs(draft)), way=way, lengths=plan.lengths)


def _inputs(rng: random.Random) -> list[Input]:
    width = rng.choice((4, 5, 6, 8))
    batch: int | str = rng.choice(("B", "B", "B", 1, 2))
    forms: list[tuple[int | str, ...]] = [
        (batch, "T", width),
        (batch, width, "T"),
        ("T", width),
        (batch, rng.choice((1, 2, 3)), "H", "W"),
        (batch, "T"),
        ("B", 6, width),
    ]
    first = rng.choices(forms, weights=[6, 4, 1, 1.5, 0.7, 0.5])[0]
    inputs = [Input("x", first)]
    if rng.random() < 0.35:
        others: list[tuple[int | str, ...]] = [first, (batch, "S", width), (batch, width, "S"), (batch, width), ("S",)]
        second = rng.choices(others, weights=[3, 2, 1, 1, 0.5])[0]
        inputs.append(Input("y", second))
    return inputs


def _typed_inputs(rng: random.Random) -> list[Input]:
    """Return inputs that lengths, indices or a mask may belong to; floats may be zeros in the example."""
    inputs = _inputs(rng)
    first = inputs[0].dims
    if len(first) == 3 and first[1] == "T" and rng.random() < 0.4:
        others = [Input("lengths", first[:1], LENGTHS, "T"), Input("index", (3,), INDICES, "T")]
        others.append(Input("mask", first[:2], MASK))
        inputs.append(rng.choice(others))
    return [replace(spec, zeros=rng.random() < _SHARE_OF_ZEROS) for spec in inputs]


def _long_inputs(rng: random.Random) -> list[Input]:
    """Return one input with an axis that may be long."""
    width = rng.choice((1, 2, 3, 5))
    forms: list[tuple[int | str, ...]] = [("B", "T"), ("B", "T", width), ("B", width, "T"), ("T", width), ("T",)]
    return [Input("x", rng.choice([*forms, (2, "T")]))]


CHAINS = Plan(OPERATORS, FEWEST_OPERATORS, MOST_OPERATORS, _inputs, {EXPORT: 1})
"""Long chains of operators, with a decision now and then."""
DECISIONS = Plan(DECIDING, 1, 9, _typed_inputs, {EXPORT: 4, TRACE: 0.5, SCRIPT: 0.5})
"""Short models that decide on sizes, loop, or choose by quotients, captured in three ways."""
LENGTHS_OF_RUNS = (1, 2, 63, 64, 65, 1_000, 100_000)
"""Around the size of a block, in which the exporter cuts a long axis, and far beyond it."""
RUNNERS = Plan(RUNNING, 1, 5, _long_inputs, {EXPORT: 1}, LENGTHS_OF_RUNS)
"""Running sums, products and extremes, and little else, at lengths of up to 100,000."""


def _sizes(symbols: list[str], numbers: tuple[int, int, int]) -> Sizes:
    batch, first, second = numbers
    others = [s for s in symbols if s != "B"]
    sizes = {s: first if others.index(s) == 0 else second for s in others}
    return {s: batch if s == "B" else min(sizes[s], 14) if "W" in symbols else sizes[s] for s in symbols}


def _add_one(draft: Draft, weighted: Mapping[Operator, float]) -> bool:
    operators, weights = list(weighted), list(weighted.values())
    for _ in range(_TRIES):
        before = len(draft.steps)
        operator = draft.rng.choices(operators, weights)[0]
        try:
            operator(draft)
        except Rejected:
            draft.undo_to(before)
        else:
            return True
    return False


def _outputs(draft: Draft) -> list[str]:
    """Return the values that no step reads, the last ones first; integers and masks are no outputs."""
    read = {name for step in draft.steps for name in step.reads}
    made = [step.name for step in draft.steps if step.is_tensor]
    unread = [name for name in made if name not in read and draft.example(name).is_floating_point()]
    chosen = unread[::-1][:_MOST_OUTPUTS]
    return chosen or [name for name in made if draft.example(name).is_floating_point()][-1:]
