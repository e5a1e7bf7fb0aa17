"""Find the operators whose results must equal PyTorch's to the last bit.

A discrete result depends on them, or a running sum or product of many steps, in which equal errors of the steps add up.
A sigmoid, tanh, erf or softplus is exact too where a small absolute error becomes a large one: an engine's kernel
returns up to 5e-7 in place of a sigmoid of 0, which each step of a sum adds, and whose logarithm is -14.6 for -20.
"""

from __future__ import annotations

import re
from typing import Final

from t2n_core.nnef.sizes.dims import at_most
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp

_ROUNDING: Final = frozenset(
    "ceil fix floor floor_divide fmod frac hardshrink heaviside remainder round sgn sign special_round threshold "
    "trunc".split()
)
"""Operators whose float result jumps where their operand changes in the last bit."""
_OF_RANGE: Final = frozenset("isfinite isinf isnan isneginf isposinf".split())
"""Conditions that the last bit of an operand does not change."""
_GRIDS: Final = frozenset("grid_sampler grid_sampler_2d grid_sampler_3d".split())
_NEAREST: Final = 1
"""The `interpolation_mode` of a grid sampler that takes one element."""
_RUNNING: Final = frozenset({"cumsum", "cumprod"})
_AMPLIFYING: Final = _RUNNING | frozenset(
    "arctanh atanh log log10 log1p log2 logit reciprocal special_log1p special_logit special_xlogy xlogy".split()
)
"""Operators that make a large error of a small absolute one of an operand near 0, or near 1 for a logit."""
_QUOTIENTS: Final = frozenset({"div", "divide", "true_divide"})
_SATURATING: Final = frozenset("erf log_sigmoid log_sigmoid_forward sigmoid softplus special_expit tanh".split())
"""Operators whose fast form has an absolute error where they approach a bound."""
_FEW_STEPS: Final = 64
"""Steps up to which a running sum keeps the precision of what it sums."""
_SUMMED: Final = re.compile(
    r"_?convolution|conv\w*|linear|bilinear|\w*mm|\w*matmul|mv|v?dot|inner|addr|addmv"  # products
    r"|\w*softmax(_\w+)?|\w*attention\w*|_transformer_\w+|(gru|lstm|rnn)_\w+|gru|lstm"
    r"|(_?native_|_fused_)?(layer|group|batch|instance|rms)_norm\w*"
    r"|cholesky|lu|orthogonal|reflect|reflections|solve"
)
"""Operators that sum in an unspecified order: nothing before them is exact after them."""


def exact_ops(graph: TorchModuleIRGraph) -> frozenset[int]:
    """Return the identities of the float operators whose results decide a discrete result, or are summed up.

    That is a rounding, a cast to integers, a comparison, an index, the index of a maximum or a running sum, with any
    number of elementwise operators, reductions and changes of shape between the two. Sigmoids and their like are among
    them before a logarithm, a sum of many steps, or as a part of a denominator.
    """
    read = {id(v) for v in graph.outputs}
    deciding: set[int] = set()
    amplified: set[int] = set()
    exact: set[int] = set()
    for op in reversed(graph.op_nodes):
        keeps_errors = not _SUMMED.fullmatch(_name(op))
        is_exact = keeps_errors and any(id(o) in deciding for o in op.outputs)
        is_amplified = keeps_errors and any(id(o) in amplified for o in op.outputs)
        if is_exact or (is_amplified and _name(op) in _SATURATING):
            exact.add(id(op))
        floats = [id(v) for v in op.inputs if _is_float(v)]
        if is_exact or _is_discontinuous(op, read) or _adds_up(op):
            deciding.update(floats)
        amplified.update(floats if is_amplified else (id(v) for v in _amplified_operands(op)))
        read.update(id(v) for v in op.inputs)
    return frozenset(exact)


def _is_discontinuous(op: TorchOp, read: set[int]) -> bool:
    """Return whether a change of a float operand's last bit can make a used result jump."""
    name = _name(op)
    if name in _OF_RANGE or not any(_is_float(v) for v in op.inputs):
        return False
    if name in _GRIDS:
        return bool(op.arguments["interpolation_mode"] == _NEAREST)
    if name in _ROUNDING or op.arguments.get("rounding_mode"):
        return True
    return any(o is not None and id(o) in read and not _is_float(o) for o in op.outputs)


def _adds_up(op: TorchOp) -> bool:
    """Return whether a float result sums or multiplies up many steps."""
    result = op.outputs[0] if _name(op) in _RUNNING else None
    if result is None or not result.shape or not _is_float(result):
        return False
    return not at_most(result.shape[op.arguments["dim"]], _FEW_STEPS)


def _amplified_operands(op: TorchOp) -> list[TensorVariable]:
    """Return the operands of which the operator makes a small absolute error a large one."""
    name = _name(op)
    if name in _QUOTIENTS:
        denominator = op.arguments["other"]
        return [denominator] if isinstance(denominator, TensorVariable) else []
    if name in _AMPLIFYING or (name == "sum" and _has_many_steps(op)):
        return [v for v in op.inputs if _is_float(v)]
    return []


def _has_many_steps(op: TorchOp) -> bool:
    """Return whether a reduction has an axis of many elements, or of any number."""
    shape, axes = op.inputs[0].shape, op.arguments.get("dim")
    if not shape or axes in (None, []):  # rank 0 has no axis that `dim=0` could name
        axes = range(len(shape))
    reduced = [shape[axis] for axis in ([axes] if isinstance(axes, int) else axes)]
    return not all(at_most(size, _FEW_STEPS) for size in reduced)


def _is_float(value: TensorVariable) -> bool:
    return value.dtype.is_floating_point


def _name(op: TorchOp) -> str:
    return op.kind.rpartition("::")[2].partition(".")[0]
