"""Record the conditions on dynamic sizes that a capture relies on, and the line of the model that each comes from.

Python code that reads a size (`if x.shape[1] > 5`, `range(len(x))`) and operators that need a certain one
(`x + ones(7)`) are decided for the example inputs. PyTorch's shape environment records each such decision as a guard;
the frames on the stack at that moment are its origin.
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sympy
import torch

from t2n_core.errors import Origin
from t2n_core.text import source_line
from t2n_core.torch_graph import naming
from t2n_core.torch_graph.compat.patches import Swap, replace
from t2n_core.torch_graph.compat.private import OpOverload

_OURS = f"{Path(__file__).parents[1] / 'frontend'}{os.sep}"
"""The folder of the code that calls a model to capture it."""
_NO_SIZE = 1 << 47
"""More elements than a process can address."""
NOT_THE_MODELS = (*(f"{Path(path).parent}/" for path in (torch.__file__, Path(__file__).parent, sympy.__file__)), "<")
"""Prefixes of the names of files without code of a model."""
_PYTHON = "Python code that reads a size"
_GUARDS = ("symbolic_shapes.py", "sym_node.py", "recording.py", __file__)
"""The files that evaluate a condition for their callers."""
_PIECES = frozenset(f"aten::{name}" for name in ("chunk", "split", "split_with_sizes", "tensor_split", "unflatten"))
"""Operators that decide in C++ how many results they have, or how large these are."""
_STRIDE_CHECKS = frozenset({"_is_contiguous_with_hinted_checks", "are_strides_like_channels_last_or_false"})
"""Functions of PyTorch that compare strides, which no value depends on."""
_SHAPES = "torch.fx.experimental.symbolic_shapes.ShapeEnv"
_OPERATORS_FILE = OpOverload.__call__.__code__.co_filename
_REPEATED = "aten::_assert_scalar"
"""The operator that PyTorch inserts into a program for a condition that it has evaluated before."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One condition on sizes that held while capturing."""

    condition: Any
    """Sympy condition, in PyTorch's symbols."""
    origin: Origin
    required: bool = False
    """True if PyTorch itself raises an error where the condition does not hold."""
    translated: bool = False
    """True if the captured program is right on both sides, and only its translation is not."""

    def fixes(self) -> int | None:
        """Return the integer that the condition makes a size equal to, also for `8 * T == 56`; None if it does not."""
        symbols = self.condition.free_symbols
        if not isinstance(self.condition, sympy.Eq) or len(symbols) != 1:
            return None
        (symbol,) = symbols
        difference = sympy.expand(self.condition.lhs - self.condition.rhs)
        if not difference.is_polynomial(symbol) or sympy.degree(difference, symbol) != 1:
            return None
        size = -difference.coeff(symbol, 0) / difference.coeff(symbol, 1)
        return int(size) if size.is_Integer else None

    def fixes_number(self) -> bool:
        """Return whether the condition makes a float that is computed from sizes equal to a constant."""
        return isinstance(self.condition, sympy.Eq) and any(isinstance(arg, sympy.Float) for arg in self.condition.args)


class Decisions:
    """The decisions of one capture. Those made inside functions named in `ignored` are left out."""

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        self._found: dict[tuple[str, str], Decision] = {}
        self._ignored = ignored

    def record(self, swap: Swap) -> None:
        """Record every decision until the block of `swap` ends.

        Decisions are PyTorch's guards, and conditions that it answers without a guard, since it assumes that a size is
        not 1 once an operator has checked it.
        """
        replace(swap, f"{_SHAPES}._log_guard", self._noting_guards)
        replace(swap, f"{_SHAPES}.evaluate_expr", _guarding_decisions)
        replace(swap, f"{_SHAPES}.guard_or_defer_runtime_assert", _guarding_decisions)
        replace(swap, "torch.fx.experimental.sym_node.SymNode.bool_", self._noting_answers)

    def _noting_guards(self, plain: Any) -> Any:
        def log_guard(env: Any, prefix: str, g: Any, *rest: Any, **more: Any) -> Any:
            self._note(g)
            return plain(env, prefix, g, *rest, **more)

        return log_guard

    def _noting_answers(self, plain: Any) -> Any:
        def bool_(node: Any) -> Any:
            noted = len(self._found)
            answer = plain(node)
            if len(self._found) == noted and not _looks_at_strides(sys._getframe(1)):
                self._note(node.expr if answer else sympy.Not(node.expr), "decided")
            return answer

        return bool_

    def _note(self, condition: Any, purpose: str | None = None) -> None:
        if not isinstance(condition, sympy.Basic) or not condition.free_symbols or _is_beyond_memory(condition):
            return
        purpose = purpose or _purpose(sys._getframe(2))
        origin = None if purpose is None else _origin()
        if purpose is None or origin is None:
            return
        if origin.op == _REPEATED or (self._ignored and _is_inside(self._ignored)):
            return
        if purpose == "layout" and not _is_of_pieces(origin):
            return
        key = (str(condition), origin.source)
        self._found.setdefault(key, Decision(condition, origin, required=purpose == "required"))

    def fixing(self) -> list[Decision]:
        """Return the decisions that fix a number or a size, numbers first: they fix sizes that follow."""
        numbers = [decision for decision in self._found.values() if decision.fixes_number()]
        return numbers + [decision for decision in self._found.values() if decision.fixes() is not None]

    def all(self) -> list[Decision]:
        """Return all decisions, in the order in which they were made."""
        return list(self._found.values())


def _guarding_decisions(plain: Any) -> Any:
    """Add no guard where PyTorch reads strides.

    The program computes the same on both sides, and a guard would let PyTorch simplify later sizes for one side only.
    """

    def evaluate(env: Any, *args: Any, **options: Any) -> Any:
        if _purpose(sys._getframe(1)) in ("decided", "required") or _is_of_pieces(_origin()):
            return plain(env, *args, **options)
        with env.suppress_guards():
            return plain(env, *args, **options)

    return evaluate


def _is_of_pieces(origin: Origin | None) -> bool:
    return origin is not None and origin.op.partition(".")[0] in _PIECES


def _is_beyond_memory(condition: sympy.Basic) -> bool:
    """Return whether a condition is an upper bound on sizes that no tensor in memory reaches."""
    if isinstance(condition, sympy.Ge | sympy.Gt):
        condition = condition.reversed
    return isinstance(condition, sympy.Le | sympy.Lt) and bool(condition.rhs.is_number and condition.rhs >= _NO_SIZE)


def _purpose(frame: FrameType | None) -> str | None:
    """Return why a condition is evaluated; None if only for the strides of a result.

    `required` is a check that raises, `decided` is Python code that branches, `layout` is a kernel that reads strides
    and sizes of 0 and 1.
    """
    kind = "layout"
    while frame is not None and frame.f_code.co_filename.endswith(_GUARDS):
        name = frame.f_code.co_name
        if name == "expect_true":
            kind = "required"
        elif kind == "layout" and name in ("bool_", "int_", "guard_int", "guard_float", "float_"):
            kind = "decided"
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == "_get_output_tensor_from_cache_entry":
        return None
    return "layout" if _looks_at_strides(frame) else kind


def _looks_at_strides(frame: FrameType | None) -> bool:
    """Return whether a kernel looks at the order of strides: a view at its argument's, a cached result at its own."""
    while frame is not None and frame.f_code.co_name in ("__bool__", "_check", "_check_with", "_hinted_eq"):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name in _STRIDE_CHECKS


def _is_inside(functions: frozenset[str]) -> bool:
    """Return whether a function of one of these names is on the stack."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name not in functions:
        frame = frame.f_back
    return frame is not None


def _origin() -> Origin | None:
    """Return the model's line that is running, and the operator it called; None outside any model.

    There is no line if the model is a module of PyTorch itself.
    """
    frame: FrameType | None = sys._getframe(2)
    operator = ""
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename.startswith(_OURS):
            return Origin(operator or _PYTHON)
        if not filename.startswith(NOT_THE_MODELS):
            code = linecache.getline(filename, frame.f_lineno).strip()
            return Origin(operator or _PYTHON, "", source_line(filename, frame.f_lineno, frame.f_code.co_name, code))
        if _may_call_operator(frame.f_code):
            called = frame.f_locals.get("func") or frame.f_locals.get("self")
            if isinstance(called, OpOverload):
                operator = naming.kind_of(called)
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=4096)  # programs are compiled anew for each capture
def _may_call_operator(code: CodeType) -> bool:
    """Return whether a frame of this code may hold an operator: its variables take long to read, for every frame."""
    return "func" in code.co_varnames or code.co_filename == _OPERATORS_FILE
