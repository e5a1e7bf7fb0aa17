"""Random models with state: the same ones each time, of many kinds, and such that a program can call them in a row."""

from __future__ import annotations

from collections import Counter

import torch

from conformance.lab.fuzz.states.program import generate_state
from conformance.lab.fuzz.states.trees import Leaf, Node, build, leaves, read
from tests.each import check_each

SEEDS = range(60)
TREE = Node("dict", (Leaf("row", 0), Node("Fields", (Leaf("rows", 1), Node("tuple", (Leaf("row", 2),))))))


def test_a_seed_means_one_model() -> None:
    assert generate_state(7) == generate_state(7)
    assert generate_state(7).source != generate_state(8).source


def test_a_tree_is_made_and_read() -> None:
    def made(_: object, part: object) -> str | None:
        return f"t{part.number}" if isinstance(part, Leaf) else None

    assert build(TREE, made) == "{'a': t0, 'b': Fields(a=t1, b=(t2,))}"
    assert build(TREE, made, is_reversed=True) == "{'b': Fields(b=(t2,), a=t1), 'a': t0}"
    paths = [path for path, _ in leaves(TREE)]
    assert paths == [("a",), ("b", "a"), ("b", "b", 0)]
    assert [read(TREE, path, "s") for path in paths] == ["s['a']", "s['b'].a", "s['b'].b[0]"]


def test_calls_in_a_row() -> None:
    def check(seed: int) -> None:
        program = generate_state(seed)
        model, tree, after = program.load()
        state = tree(program.start())
        for _ in range(3):
            outputs, state = after(model(torch.randn(1, 2), state), state)
            assert all(isinstance(output, torch.Tensor) for output in outputs)
        assert len(program.names) == len(program.start()) == len(program.example())

    check_each(SEEDS, check)


def test_the_models_are_of_many_kinds() -> None:
    programs = [generate_state(seed) for seed in SEEDS]
    text = "\n".join(program.source for program in programs)
    for word in ("Named(", "Fields(b=", "Attributes(", ", 'a': ", "torch.cat", ".mul_(", ".clone()", "return new, y"):
        assert word in text, word
    kinds = Counter(str(program.state) for program in programs)
    assert len(kinds) == 5
    assert max(program.operators for program in programs) > 6
