"""Run a model with symbolic sizes and record each condition on them, independent of any capture.

The tensors of the run are fake, and its shape environment is our own: it answers a condition on a size by its value,
adds no guard, fixes nothing, and records it. So the treatment of conditions in a capture has no influence here. The
overrides that keep sizes symbolic in Python's own functions are shared with captures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import sympy
import torch

from t2n_core.nnef.sizes.dims import Dim, Shape, compile_size
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.modes import CaptureMode
from t2n_core.torch_graph.compat.patches import swaps
from t2n_core.torch_graph.compat.private import (
    ConstantSource,
    DimDynamic,
    FakeTensorMode,
    ShapeEnv,
    disable_fake_tensor_cache,
    enable_python_dispatcher,
)
from t2n_core.torch_graph.compat.quiet import quiet
from t2n_core.torch_graph.overrides.pools import pools_of_any_size
from t2n_core.torch_graph.overrides.python_calls import python_calls_of_sizes
from t2n_core.torch_graph.overrides.symbolic_math import keep_math_symbolic
from t2n_core.torch_graph.reachable import is_foreign

_QUESTIONS = 6000
"""Most questions of one run: a larger model is recorded up to there."""


@dataclass(frozen=True, slots=True)
class Question:
    """A condition on sizes, and its answer in one run."""

    condition: Any
    """A sympy condition, in symbols with the names of the dynamic axes."""
    answer: bool
    is_the_models: bool
    """True if it was evaluated by code other than PyTorch's own."""
    is_number: bool = False
    """True if there was no condition, but a size became a Python number, as in `range(x.shape[1])`."""


class _EnoughError(Exception):
    """Ends a run with too many questions."""


def _environment(sizes: Mapping[str, int]) -> Any:
    class Environment(ShapeEnv):
        """Answers by the sizes of the run."""

        def __init__(self) -> None:
            super().__init__()
            self.found: dict[Any, Question] = {}
            self.answers: dict[Any, Any] = {}
            self.hints: dict[Any, Any] = {}
            self.names: dict[Any, Any] = {}
            self.asked = 0

        def size(self, name: str, value: int) -> Any:
            source = ConstantSource(name)
            symbol = self.create_symbol(
                value, source, DimDynamic.DYNAMIC, constraint_dim=None, do_not_specialize_zero_one=True
            )
            self.hints[symbol], self.names[symbol] = sympy.Integer(value), sympy.Symbol(name)
            return self.create_symintnode(symbol, hint=value, source=source)

        def evaluate_expr(self, orig_expr: Any, *rest: Any, **more: Any) -> Any:
            self.asked += 1
            if self.asked > _QUESTIONS:
                raise _EnoughError
            if orig_expr not in self.answers:
                expression = sympy.sympify(orig_expr)
                answer = self.answers[orig_expr] = expression.xreplace(self.hints)
                if expression.free_symbols:
                    self.found[expression] = self._question(expression, answer)
            elif (
                (question := self.found.get(orig_expr)) is not None
                and not question.is_the_models  # asked by PyTorch before
                and _is_the_models(sys._getframe(1))
            ):
                self.found[orig_expr] = replace(question, is_the_models=True)
            return self.answers[orig_expr]

        def _question(self, expression: Any, answer: Any) -> Question:
            named_expression = expression.xreplace(self.names)
            is_condition = answer in (sympy.true, sympy.false)
            condition = named_expression if is_condition else sympy.Eq(named_expression, answer, evaluate=False)
            is_true = not is_condition or bool(answer)
            return Question(condition, is_true, _is_the_models(sys._getframe(2)), not is_condition)

    environment = Environment()
    return environment, {name: environment.size(name, size) for name, size in sizes.items()}


def questions(
    model: Any,
    run: Callable[[Sequence[torch.Tensor]], Any],
    tensors: Sequence[torch.Tensor],
    shapes: Sequence[Shape],
    sizes: Mapping[str, int],
) -> list[Question]:
    """Return the conditions on sizes in a run of a model, in order.

    They end at the first error if the model cannot run on fake tensors.

    Args:
        model: the module, which stays as it is.
        run: calls the model on tensors that replace `tensors`.
        tensors: inputs of the model.
        shapes: their symbolic shapes.
        sizes: the size of each symbol in this run.
    """
    environment, symbols = _environment(sizes)
    with (
        suppress(Exception),
        quiet(),
        preserve_containers(model) as functions,
        torch.no_grad(),
        python_calls_of_sizes(functions),
        swaps() as swap,
        pools_of_any_size(),
        enable_python_dispatcher(),
        FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True) as mode,
        disable_fake_tensor_cache(mode),  # most entries of a single run are used once; they ask further questions
    ):
        keep_math_symbolic(swap)
        example = [
            torch.empty([_size(d, symbols) for d in shape], dtype=tensor.dtype)
            for tensor, shape in zip(tensors, shapes, strict=True)
        ]
        with CaptureMode():
            run(example)
    return list(environment.found.values())


def _size(dim: Dim, symbols: Mapping[str, Any]) -> Any:
    return dim if isinstance(dim, int) else compile_size(dim)(symbols)


def _is_the_models(frame: FrameType | None) -> bool:
    """Return whether Python code other than PyTorch's own asks, without a function of PyTorch in between."""
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if not name.startswith(("torch.fx.experimental", "torch._C")) and name != "torch" and name != __name__:
            return not name or not is_foreign(name)
        frame = frame.f_back
    return False
