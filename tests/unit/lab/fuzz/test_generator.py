"""Random models: the same ones each time, and such that PyTorch runs them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
import torch

from conformance.lab.fuzz.generator import DECISIONS, generate
from conformance.lab.fuzz.judge import references
from conformance.lab.fuzz.operators import DECIDING, OPERATORS
from conformance.lab.fuzz.program import EXPORT, LENGTHS, SCRIPT, TRACE, Input, Program, Step
from conformance.lab.fuzz.sizes import MOST_SIZES, judged_sizes, turning_sizes

SEEDS = range(100, 130)


def test_a_seed_means_one_model_in_every_process() -> None:
    script = (
        "from conformance.lab.fuzz.generator import generate; p = generate(7); print(p.source, p.inputs, p.example)"
    )
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
    samples = references(program)
    assert samples[0].sizes == dict(program.example)
    assert len(samples) >= 3


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
    sizes = [assignment["T"] for assignment in judged_sizes(program)]
    assert sizes[0] == 6
    assert {1, 2, 5, 7, 12, 13, 14} <= set(sizes)
    assert max(sizes) > 60
    assert len(sizes) <= MOST_SIZES


def test_a_size_at_which_pytorch_fails_does_not_count() -> None:
    step = Step("v0", "x.view(2, -1, 3, 4)")
    program = Program((Input("x", (2, "T", 4)),), (step,), ("v0",), {"T": 6}, seed=1)
    assert {reference.sizes["T"] % 3 for reference in references(program)} == {0}


def test_a_step_is_found_by_its_line() -> None:
    program = generate(3)
    for number, line in enumerate(program.source.splitlines(), start=1):
        step = program.step_at(number)
        assert (step is not None) == (line.startswith("        ") and " = " in line and "self.layer_v" not in line[:22])
        if step is not None:
            assert line.strip().startswith(f"{step.name} = ")


def test_models_that_decide_are_of_many_kinds() -> None:
    programs = [generate(seed, DECISIONS) for seed in range(100, 180)]
    text = "\n".join(program.source for program in programs)
    for word in (
        " if c",
        " % ",
        ".is_contiguous()",
        ".numel()",
        " for i in range(",
        ".floor()",
        "math.ceil",
        "lengths",
    ):
        assert word in text, word
    assert {EXPORT, TRACE, SCRIPT} == {program.way for program in programs}
    assert any(model_input.zeros for program in programs for model_input in program.inputs)
    assert all(weight > 0 for weight in DECIDING.values())


def test_lengths_are_valid_at_every_size() -> None:
    lengths = Input("lengths", ("B",), LENGTHS, "T")
    drawn = [lengths.draw({"B": 40, "T": t}, torch.Generator().manual_seed(t)) for t in (1, 2, 9)]
    assert [(int(tensor.min()), int(tensor.max())) for tensor in drawn] == [(1, 1), (1, 2), (1, 9)]


def test_an_example_of_zeros_is_drawn_at_other_sizes() -> None:
    step = Step("v0", "x * 2")
    program = Program((Input("x", (2, "T", 4), zeros=True),), (step,), ("v0",), {"T": 6}, seed=1)
    assert not program.example_arguments()["x"].any()
    assert program.arguments({"T": 6})["x"].any()


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("x.shape[1] * x.shape[2] == 24", lambda t, s: t * s == 24),
        ("x.shape[1] == x.shape[2] and x.shape[1] > 12", lambda t, s: t == s > 12),
        ("x.shape[1] % 13 == 7", lambda t, s: t % 13 == 7),
        ("x.shape[1] + x.shape[2] == 30", lambda t, s: t + s == 30),
    ],
)
def test_sizes_are_found_at_which_a_condition_turns(condition: str, found: Callable[[int, int], bool]) -> None:
    steps = (Step("c0", condition), Step("v1", "x * 2 if c0 else x"))
    program = Program((Input("x", (2, "T", "S")),), steps, ("v1",), {"T": 6, "S": 9}, seed=1)
    turning = turning_sizes(program)
    assert turning
    assert all(found(sizes["T"], sizes["S"]) for sizes in turning)
    assert all(sizes in judged_sizes(program) for sizes in turning)


def test_a_model_with_a_scalar_is_drawn_to_its_end() -> None:
    """Some step of this model picks a tensor without axes."""
    assert generate(101902, DECISIONS).steps
