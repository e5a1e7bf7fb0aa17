"""A planted fault is found in a small model."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from conformance.lab.fuzz.edits import renumber_steps, without
from conformance.lab.fuzz.generator import generate
from conformance.lab.fuzz.judge import references
from conformance.lab.fuzz.mending import without_refused
from conformance.lab.fuzz.program import Input, Program, Step
from conformance.lab.fuzz.shrink import shrink
from conformance.lab.fuzz.snippet import snippet
from conformance.lab.fuzz.verdict import WRONG, Verdict

X = Input("x", ("B", "T", 4))
STEPS = (
    Step("n0", "x.shape[1]"),
    Step("v1", "torch.tanh(x)"),
    Step("v2", "self.LAYER(v1)", "nn.Linear(4, 6)"),
    Step("n3", "min(n0, 16)"),
    Step("v4", "v2[:, :n3]"),
    Step("v5", "v4.cumsum(1) / 4"),
    Step("v6", "F.pad(v5, (0, 0, 0, 2))"),
    Step("v7", "v6.transpose(1, 2)"),
    Step("v8", "v4.mean(1)"),
)
PROGRAM = Program((X, Input("y", ("B", 4))), STEPS, ("v7", "v8"), {"B": 3, "T": 9}, seed=5)


def planted(program: Program) -> Verdict | None:
    """Wrong wherever a sum over positions stands behind a slice, if PyTorch runs the model."""
    text = program.source
    if not references(program):
        return None
    if "cumsum" not in text or ":n" not in text or ".shape" not in text:
        return None
    return Verdict("tract 0.0", WRONG, failing=(program.example,))


def test_what_does_not_matter_is_dropped() -> None:
    small = shrink(PROGRAM, planted)
    assert planted(small)
    assert [step.text for step in small.steps] in (
        ["x.shape[1]", "x[:, :n0]", "v1.cumsum(1) / 4"],
        ["x.shape[1]", "min(n0, 16)", "x[:, :n1]", "v2.cumsum(1) / 4"],
    )
    assert [model_input.name for model_input in small.inputs] == ["x"]
    assert len(small.symbols) == 1
    assert all(size <= 3 for size in small.example.values())


@pytest.mark.parametrize("seed", [201, 204, 209])
def test_a_random_model_shrinks_to_the_operator_that_fails(seed: int) -> None:
    program = generate(seed)
    texts = " ".join(step.text for step in reversed(program.steps) if not step.is_size)
    word = re.findall(r"\b[a-z]\w{3,}(?=\()", texts)[0]

    def fails(candidate: Program) -> Verdict | None:
        samples = references(candidate, [candidate.example])
        return Verdict("tract 0.0", WRONG) if samples and word in candidate.source else None

    small = shrink(program, fails)
    assert fails(small)
    assert len(small.steps) <= 6 < len(program.steps)


def test_nothing_is_dropped_that_the_failure_needs() -> None:
    assert shrink(PROGRAM, lambda _: None).steps == PROGRAM.trimmed().steps


def test_steps_are_named_in_their_order() -> None:
    mixed = replace(
        PROGRAM, steps=(Step("v9", "x * 2"), Step("v1", "v9 + x"), Step("v0", "v1 - v9")), outputs=("v0", "v9")
    )
    program = renumber_steps(mixed)
    assert [f"{s.name} = {s.text}" for s in program.steps] == ["v0 = x * 2", "v1 = v0 + x", "v2 = v1 - v0"]
    assert program.outputs == ("v2", "v0")


def test_a_step_can_go_with_all_that_reads_it() -> None:
    *_, last = without(PROGRAM, STEPS[4])
    assert "v4" not in last.trimmed().source
    assert last.outputs


def test_the_lines_of_an_error_are_taken_out() -> None:
    line = next(i for i, text in enumerate(PROGRAM.source.splitlines(), 1) if "cumsum" in text)
    smaller = without_refused(PROGRAM, f"aten::cumsum at fuzz_1a.py:{line} in forward: `…`")
    assert smaller is not None
    assert "cumsum" not in smaller.source
    assert "transpose" in smaller.source
    assert without_refused(PROGRAM, "an error without a line") is None


def test_a_snippet_is_python_and_says_what_failed() -> None:
    verdict = Verdict("tract 0.21.19", WRONG, "v7: shape [1], expected [2]", failing=({"B": 2, "T": 17},))
    text = snippet(PROGRAM, verdict)
    compile(text, "snippet.py", "exec")
    assert "WRONG on tract 0.21.19" in text
    assert "{'B': 2, 'T': 17}" in text
    assert "v7: shape [1]" in text
