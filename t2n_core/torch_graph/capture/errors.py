"""Errors for models that PyTorch cannot capture: the problem, the line of the model, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from t2n_core.errors import CaptureError, DataDependentError, InputError, Origin
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.text import first_lines, line_of_error
from t2n_core.torch_graph.compat.files import NOT_THE_USERS
from t2n_core.torch_graph.constraints.declared_axes import DeclaredAxes
from t2n_core.torch_graph.constraints.guards import Decision
from t2n_core.torch_graph.constraints.narrowing import SizeDecision

_SHOWN = 3
"""Most lines of the model in an error message."""
_TENSORS = re.compile(r"inputs\['tensors(?:'\]\[|_)(\d+)(?:'\])?\]?")
"""An input in a message of torch.export: `inputs['tensors'][0]`, or `inputs['tensors_0']` from torch 2.14 on."""


def refusal(
    cause: Exception, model: str, input_names: Sequence[str], fixing: Sequence[Decision], can_trace: bool
) -> CaptureError:
    """Return the error for an exception of torch.export; `fixing` are the decisions that fixed a dynamic size."""
    from t2n_core.torch_graph.compat.private import GuardOnDataDependentSymNode

    frozen = 'capture="trace" freezes such decisions as the example inputs make them'
    if isinstance(cause, GuardOnDataDependentSymNode):
        return DataDependentError(
            f"{model} has Python control flow that depends on values in a tensor, which a graph cannot express",
            origin=_origin("Python code that reads values of a tensor", cause),
            hint=f"torch.where(condition, a, b) computes both branches{f'; {frozen}' if can_trace else ''}",
        )
    if fixing and fixing[0].fixes_number():
        return CaptureError(
            f"{model} computes a number from sizes where PyTorch takes one that is known at capture",
            origin=fixing[0].origin,
            hint="compute with tensors there, keep the axis static, or pass sizes: size=(h, w) for scale_factor",
        )
    problem = _TENSORS.sub(lambda m: f"input `{input_names[int(m[1])]}`", first_lines(cause))
    if "static shape" in problem and fixing:
        problem += "".join(f"\nThe size is {d.fixes()} because of {d.origin}." for d in fixing[:_SHOWN])
        return CaptureError(
            f"torch.export cannot capture {model}: {problem}",
            op=fixing[0].origin.op,
            hint="compute with the input's size (x.shape[1]) instead of the constant, or keep the axis static",
        )
    hint = "the model must run on the example inputs and have no data-dependent Python control flow"
    return CaptureError(
        f"torch.export cannot capture {model}: {problem}",
        origin=_origin(type(cause).__name__, cause),
        hint=f"{hint}; {frozen}" if can_trace else hint,
    )


def fixed_axis(name: str, size: int, decisions: Sequence[SizeDecision]) -> CaptureError:
    """Return the error for a dynamic axis that the model fixes to one size."""
    about = [d for d in decisions if any(s.name == name for s in d.condition.free_symbols)]
    reasons = [f"the axis `{name}` is not free: the model fixes it to {size}", "; ".join(map(str, about[:_SHOWN]))]
    return CaptureError(
        ", ".join(filter(None, reasons)),
        origin=about[0].origin if about else None,
        hint="compute with the input's size (x.shape[1]) instead of the constant, or keep the axis static",
    )


def with_source_line(refused: CaptureError) -> CaptureError:
    """Return the error with the model's line that led to it, unless it already has one."""
    if refused.origin is None and refused.op is None:
        refused.origin = _origin("Python code", refused)
    return refused


def refuse_smaller_trace(
    declared: DeclaredAxes, limits: Mapping[str, tuple[int, int | None]], reasons: Sequence[Warning]
) -> None:
    """Raise CaptureError if a trace is valid for fewer sizes than the declared bounds."""
    for name, (low, high) in limits.items():
        wanted_low, wanted_high = declared.range.bounds.get(name, (0, None))
        is_low = low > wanted_low and declared.keeps_least(name)
        is_high = wanted_high is not None and high is not None and high < wanted_high
        if name in declared.explicit and (is_low or is_high):
            raise CaptureError(
                f"{name} is declared from {wanted_low} to {wanted_high or 'any size'}; a trace is right only for "
                f"{SizeRange({name: (low, high)})}: {reasons[-1] if reasons else name}",
                hint='declare a smaller range, or leave capture="trace" out',
            )


def refuse_smaller_range(declared: DeclaredAxes, sizes: SizeRange, decisions: Sequence[SizeDecision]) -> None:
    """Raise CaptureError if a graph is valid for fewer sizes than the declared bounds.

    A lower bound of 0 that is only the default, as of a Dim without `min`, may become larger, and a Dim without `max`
    may get one.
    """
    for decision in decisions:
        for name in sorted({s.name for s in decision.condition.free_symbols} & declared.explicit):
            (low, high), (wanted_low, wanted_high) = sizes.bounds[name], declared.range.bounds[name]
            tied = any(s.name == name for condition in sizes.conditions for s in condition.free_symbols)
            is_most_kept = wanted_high is not None
            if tied or (high != wanted_high and is_most_kept) or (low > wanted_low and declared.keeps_least(name)):
                only = "PyTorch itself runs this model" if decision.required else "the captured graph holds"
                raise CaptureError(
                    f"{name} is declared from {wanted_low} to {wanted_high or 'any size'}; {only} only for {sizes}: "
                    f"{decision}",
                    origin=decision.origin,
                    hint=f'declare torch.export.Dim("{name}", min={low}, max={high}), or compute both sides with '
                    "sizes, such as min(x.shape[1], 64), in place of the decision",
                )


def refusal_to_trace(cause: Exception, model: str) -> CaptureError:
    """Return the error for an exception of torch.jit.trace."""
    problem = f"torch.jit.trace cannot capture {model}: {first_lines(cause)}"
    return CaptureError(problem, origin=_origin(type(cause).__name__, cause))


_OF_CODE = (AttributeError, ImportError, LookupError, NameError, NotImplementedError)
"""Errors of a model's code, whatever its inputs are."""


def refusal_to_run(cause: Exception, model: str, inputs: str) -> InputError:
    """Return the error for a model that PyTorch cannot run on the inputs described by `inputs`."""
    hint = "PyTorch itself refuses them: compare dtypes and shapes with those that the model expects"
    if isinstance(cause, _OF_CODE):
        hint = "the code of the model raises this in PyTorch too, before anything is exported"
    return InputError(
        f"{model} cannot run on its inputs ({inputs}): {first_lines(cause)}",
        origin=_origin(type(cause).__name__, cause),
        hint=hint,
    )


def _origin(description: str, cause: Exception) -> Origin | None:
    """Return the innermost of the model's lines that led to an exception."""
    line = line_of_error(cause, NOT_THE_USERS)
    return Origin(description, "", line) if line else None
