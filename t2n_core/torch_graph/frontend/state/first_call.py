"""Compare a model's first call, without a state, with a step from a state of zeros."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from t2n_core.torch_graph.frontend.state.state import ModelState, StateTensor, as_call

_CLOSE = 1e-3
"""Relative to the largest value, the difference up to which two results count as equal."""


def first_call_note(
    state: ModelState, signature: inspect.Signature, call: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
) -> str:
    """Return a line for a model whose call without a state differs from a step from zeros; otherwise "".

    Such a model pads its first piece in another way, or starts from learned values.
    """
    if any(signature.parameters[name].default is not None for name in state.examples):
        return ""
    before, after = state.flat_arguments(signature, *as_call(args, kwargs))
    zeros = {name: {tensor.input: zeros_of(tensor) for tensor in state.of(name)} for name in state.examples}
    try:
        with torch.no_grad():
            first = state.results_of(call(*before, **{k: v for k, v in after.items() if k not in state.examples}))
            step = state.run(call, before, {**after, **zeros})
    except Exception:
        return ""  # a model that needs its state has no such first call
    seen = [
        name for name in first if isinstance(first[name], torch.Tensor) and isinstance(step.get(name), torch.Tensor)
    ]
    if all(_is_close(first[name], step[name]) for name in seen):
        return ""
    names = ", ".join(f"`{name}`" for name in state.examples)
    return (
        f"a first call without {names} gives other results than a step from zeros: begin with the state after such a "
        "call of the model"
    )


def zeros_of(tensor: StateTensor) -> torch.Tensor:
    """Return zeros in the shape of a state, empty along the axes that grow."""
    return tensor.example.new_zeros(
        [0 if axis in tensor.growing else size for axis, size in enumerate(tensor.example.shape)]
    )


def _is_close(first: torch.Tensor, step: torch.Tensor) -> bool:
    if first.shape != step.shape:
        return False
    if not first.numel() or not first.is_floating_point():
        return bool((first == step).all())
    return bool((first - step).abs().max() <= _CLOSE * first.abs().max())
