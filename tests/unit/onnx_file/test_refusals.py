"""The reasons in messages of real releases, deepest cause first."""

from __future__ import annotations

import pytest

from t2n_core.onnx_file.refusals import Kind, refusal_of

MESSAGES = [
    ('can not be made a TypedOp.\n  in: node #1 "y" Unimplemented(Gelu) ToTyped', Kind.OPERATOR, "y", "Gelu"),
    ('can not be made a TypedOp.\n  in: node #1 "y" Unimplemented(Own) ToTyped', Kind.FUNCTION, "y", "Own"),
    ('can not be made a TypedOp.\n  in: node #1 "s" Unimplemented(SequenceAt)', Kind.SEQUENCE, "s", "SequenceAt"),
    ('Wrong number of outputs. Op says 1, node says 2.\nnode #5 "X" Unimplemented(Adam)', Kind.OPERATOR, "X", "Adam"),
    ('expected axes as a constant\n  in: Translating node #3 "r" ReduceSum', Kind.CONSTANT, "r", "ReduceSum"),
    ("mode: cubic\n  in: Building node  (Resize)", Kind.OPTION, "", "Resize"),
    ('Impossible to unify TDim with I64.\n  in: node #4 "a" Add', Kind.SHAPE_ARITHMETIC, "a", "Add"),
    ('Impossible to unify Val(1) with Val(0).\nnode #0 "s" Split\nnode #7 "i" If', Kind.CONTROL_FLOW, "s", "Split"),
    ("Unsupported DatumType in the public API TDim", Kind.SHAPE_OUTPUT, "", ""),
    ('No super type for Bool and F32\n  in: Failed analyse for node #2 "w" Where', Kind.DATA_TYPE, "w", "Where"),
    ("graph input `state` has no type", Kind.UNTYPED_INPUT, "", ""),
    ("Trying to substitute a 2,1,T,T,F32 by 1,1,1,1,F32\n  in: running pass FoldUniformMask", Kind.OPTIMISER, "", ""),
    ('TDim is not a number\n  in: Evaluating #58 "cs" CumSum', Kind.SHAPE_ARITHMETIC, "cs", "CumSum"),
    ('Undetermined symbol in expression: s\n  in: Evaluating #1 "r" Resize', Kind.SHAPE_ARITHMETIC, "r", "Resize"),
    ('Undetermined symbol in expression: x\nEvaluating #2 "w" Broadcast', Kind.SHAPE_ARITHMETIC, "w", "Broadcast"),
    ("Can't divide B by N\n  in: Failed analyse for node #3 \"v\" Reshape", Kind.SHAPE_ARITHMETIC, "v", "Reshape"),
    ('Reshape volume mismatch: input [T] (vol=T)\n  in: node #3 "v" Reshape', Kind.SHAPE_ARITHMETIC, "v", "Reshape"),
    ('Incompatible reshape\n  in: Eager eval #164 "r.0" Reshape\nrunning pass P', Kind.OPTIMISER, "r.0", "Reshape"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "kind", "node", "op"), MESSAGES)
def test_kind_and_node(message: str, kind: Kind, node: str, op: str) -> None:
    refusal = refusal_of(message, {"Own"})
    assert refusal is not None
    assert (refusal.kind, refusal.node, refusal.op) == (kind, node, op)
    assert (f"node `{node}` ({op}): " if node else op) in refusal.hint


def test_a_message_without_a_known_reason() -> None:
    assert refusal_of("something else happened") is None
