"""The check that the statements of a program fit together."""

from __future__ import annotations

from typing import Any

import pytest

from t2n_core.errors import InputError
from t2n_core.program import if_, items, let, run, text, while_
from t2n_core.program.statements import Signature, check_statements

PARTS = {"encoder": Signature(("features",), ("encoded", "length")), "joint": Signature(("a", "b"), ("logits",))}
ENCODE = run("encoder", {"features": "x"}, {"encoded": "frames"})
JOIN = run("joint", {"a": "frames", "b": "frames"}, {"logits": "y"})


def check(*statements: Any, outputs: tuple[str, ...] = ("y",)) -> None:
    check_statements(statements, ("x",), outputs, PARTS)


def test_statements_that_fit() -> None:
    check(
        ENCODE, let(t=0), while_(["less", "t", 3], JOIN, let(t=["add", "t", 1])), if_(["equal", "t", 3], [JOIN], [JOIN])
    )
    check(ENCODE, JOIN, let(z=["full", items(1, "x"), 0.5, text("float32")]), outputs=("y", "z"))


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ([JOIN], "statement 0, a of the program reads `frames`, which may not be set there"),
        ([ENCODE], "no statement of the program always sets its output y"),
        ([ENCODE, while_(True, JOIN)], "always sets its output y"),
        ([ENCODE, if_(True, [JOIN])], "always sets its output y"),
        ([let(y=1)], "no statement of the program runs encoder, joint"),
        ([run("decoder", {}, {})], "statement 0 of the program runs decoder; its archives are encoder, joint"),
        ([run("encoder", {"mel": "x"}, {})], "encoder has no inputs mel; it has features"),
        ([run("encoder", {"features": "x"}, {"out": "y"})], "encoder has no outputs out; it has encoded, length"),
        ([ENCODE, run("joint", {"a": "frames"}, {"logits": "y"})], "statement 1: joint also needs b"),
        ([let(y=["plus", 1, 2])], "there is no operation 'plus'"),
        ([let(y=["add", 1])], "add takes 2 operands, not 1"),
        ([let(y=["full", items(1), 0, "float32"])], "reads `float32`, which may not be set there"),
        ([let(y=None)], "None is no expression"),
        ([{"repeat": 3}], "it is none of run, let, if, while"),
        ([ENCODE, while_(["less", "t", 3], let(t=1))], "statement 1 of the program reads `t`"),
        ([ENCODE, while_(True, let(y="z"))], "statement 1, do, statement 0, y of the program reads `z`"),
    ],
)
def test_statements_that_do_not_fit(statements: list[Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        check(*statements)
    assert message in refused.value.message
