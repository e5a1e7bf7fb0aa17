"""Random models: the same ones each time, and such that PyTorch runs them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
import torch

from conformance.fuzz.generator import generate
from conformance.fuzz.judge import references
from conformance.fuzz.operators import OPERATORS
from conformance.fuzz.program import Input, Program, Step
from conformance.fuzz.sizes import MOST_SIZES, judged_sizes

SEEDS = range(100, 130)


def test_a_seed_means_one_model_in_every_process() -> None:
    script = "from conformance.fuzz.generator import generate; p = generate(7); print(p.source, p.inputs, p.example)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    here = generate(7)
    assert done.stdout.strip() == f"{here.source} {here.inputs} {here.example}"
    assert generate(8).source != here.source


def test_equal_programs_have_equal_weights_and_inputs() -> None:
    first, second = generate(11), generate(11)
    sizes = dict(first.example)
    for mine, theirs in zip(first.model().parameters(), second.model().parameters(), strict=True):
        assert torch.equal(mine, theirs)
    for name, value in first.arguments(sizes).items():
        assert torch.equal(value, second.arguments(sizes)[name])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_runs_at_its_example_and_at_other_sizes(seed: int) -> None:
    program = generate(seed)
    assert program.symbols
    assert set(program.example) == set(program.symbols)
    known = references(program)
    assert known[0].sizes == dict(program.example)
    assert len(known) >= 3


def test_the_models_are_of_many_kinds() -> None:
    programs = [generate(seed) for seed in SEEDS]
    tensors = [sum(not step.is_size for step in program.steps) for program in programs]
    assert 8 <= sum(tensors) / len(tensors) <= 40
    symbols = Counter(symbol for program in programs for symbol in program.symbols)
    assert {"B", "T"} <= symbols.keys()
    traced = [size for program in programs for size in program.example.values()]
    assert traced.count(1) >= len(programs) // 5
    text = "\n".join(program.source for program in programs)
    for word in ("torch.cat", "F.pad", "reshape", "nn.Conv1d", "nn.Linear", "torch.arange", " // ", "min(", ".shape["):
        assert word in text, word


def test_every_operator_is_drawn_some_time() -> None:
    assert all(weight > 0 for weight in OPERATORS.values())
    assert len({operator.__name__ for operator in OPERATORS}) == len(OPERATORS)


def test_sizes_lie_on_both_sides_of_what_the_model_is_written_with() -> None:
    step = Step("v0", "x[:, :13] * 2")
    program = Program((Input("x", (2, "T", 4)),), (step,), ("v0",), {"T": 6}, seed=1)
    sizes = [one["T"] for one in judged_sizes(program)]
    assert sizes[0] == 6
    assert {1, 2, 5, 7, 12, 13, 14} <= set(sizes)
    assert max(sizes) > 60
    assert len(sizes) <= MOST_SIZES


def test_a_size_at_which_pytorch_fails_does_not_count() -> None:
    step = Step("v0", "x.view(2, -1, 3, 4)")
    program = Program((Input("x", (2, "T", 4)),), (step,), ("v0",), {"T": 6}, seed=1)
    assert {one.sizes["T"] % 3 for one in references(program)} == {0}


def test_a_step_is_found_by_its_line() -> None:
    program = generate(3)
    for number, line in enumerate(program.source.splitlines(), start=1):
        step = program.step_at(number)
        assert (step is not None) == (line.startswith("        ") and " = " in line and "self.layer_v" not in line[:22])
        if step is not None:
            assert line.strip().startswith(f"{step.name} = ")
