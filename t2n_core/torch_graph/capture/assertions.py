"""Assertions of a model's Python code on values of tensors, which change no result."""

from __future__ import annotations

import dis
import functools
import itertools
import linecache
import sys
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Final

from t2n_core.torch_graph.reachable import is_foreign

_BRANCHES: Final = ("JUMP_IF_TRUE", "JUMP_IF_FALSE", "JUMP_FORWARD_IF_TRUE", "JUMP_FORWARD_IF_FALSE")
"""Ends of the names of the instructions that branch on a truth, in the releases of Python."""
_REWRITTEN: Final = "@py_assert"
"""Beginning of the names of parts of an assertion that pytest has rewritten, all of which it asserts."""


class Assertions:
    """The assertions that one capture has left out."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}
        """Source lines, in order."""

    def truth(self) -> bool | None:
        """Return the truth of a tensor with which the `assert` that asks for it holds; None outside of an `assert`."""
        frame = _model_frame()
        truth = None if frame is None else _asserted_truths(frame.f_code).get(frame.f_lasti)
        if frame is not None and truth is not None:
            self._leave_out(frame)
        return truth

    def leave_out(self) -> None:
        """Leave out a call that asserts."""
        frame = _model_frame()
        if frame is not None:
            self._leave_out(frame)

    def _leave_out(self, frame: FrameType) -> None:
        file, line = frame.f_code.co_filename, frame.f_lineno or 0
        self.lines[f"{file}:{line}: `{linecache.getline(file, line).strip()}`"] = None


def _model_frame() -> FrameType | None:
    """Return the innermost frame of the model's own code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_foreign(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return frame


@functools.lru_cache(1 << 10)
def _asserted_truths(code: CodeType) -> Mapping[int, bool]:
    """Return the offsets of branches that raise an AssertionError on one side, with the truth that leads to the other.

    Python's compiler puts what a failed assertion runs after the branch, or at its target.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    raising = {step.offset for step in steps if _loads_assertion_error(step)}
    truths: dict[int, bool] = {}
    for before, step, after in zip(steps, steps[1:], steps[2:], strict=False):
        holds_if = step.opname.endswith("IF_TRUE")
        if str(before.argval).startswith(_REWRITTEN):
            if step.opname in ("UNARY_NOT", "TO_BOOL") or step.opname.endswith(_BRANCHES):
                truths[step.offset] = step.opname != "UNARY_NOT" and not _is_negated(step, after)
        elif step.opname.endswith(_BRANCHES) and (after.offset in raising or step.argval in raising):
            truths[step.offset] = holds_if if after.offset in raising else not holds_if
    for step, after in itertools.pairwise(steps):
        if step.opname == "TO_BOOL" and after.offset in truths:
            truths[step.offset] = truths[after.offset]
    return truths


def _is_negated(step: dis.Instruction, after: dis.Instruction) -> bool:
    return step.opname == "TO_BOOL" and after.opname == "UNARY_NOT"


def _loads_assertion_error(step: dis.Instruction) -> bool:
    return step.opname == "LOAD_ASSERTION_ERROR" or (
        step.opname == "LOAD_COMMON_CONSTANT" and "AssertionError" in step.argrepr
    )
