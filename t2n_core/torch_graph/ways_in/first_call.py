"""A model's first call, which has no state yet, beside a step from a state of zeros."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from t2n_core.torch_graph.ways_in.state import ModelState, StateTensor, as_call

_CLOSE = 1e-3
"""Share of the largest number by which two results may differ and be the same."""


class StateWarning(UserWarning):
    """A model does not begin with a state of zeros."""


def first_call_note(
    state: ModelState, signature: inspect.Signature, call: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
) -> str:
    """Return a line for a model whose call without a state computes something else than a step from zeros; else "".

    Such a model pads its first piece in another way, or begins with numbers that it has learned.
    """
    if any(signature.parameters[name].default is not None for name in state.examples):
        return ""
    before, after = state.flat_arguments(signature, *as_call(args, kwargs))
    zeros = {name: {one.input: zeros_of(one) for one in state.of(name)} for name in state.examples}
    try:
        with torch.no_grad():
            first = state.results_of(call(*before, **{k: v for k, v in after.items() if k not in state.examples}))
            step = state.run(call, before, {**after, **zeros})
    except Exception:
        return ""  # a model that cannot be called so has no first call of that kind
    seen = [
        name for name in first if isinstance(first[name], torch.Tensor) and isinstance(step.get(name), torch.Tensor)
    ]
    if all(_is_close(first[name], step[name]) for name in seen):
        return ""
    names = ", ".join(f"`{name}`" for name in state.examples)
    return (
        f"a first call without {names} gives something else than a step from zeros: begin with the state that such a "
        "call of the model leaves"
    )


def zeros_of(one: StateTensor) -> torch.Tensor:
    """Return zeros in the form of a state, empty along the axes that grow."""
    return one.example.new_zeros([0 if axis in one.growing else size for axis, size in enumerate(one.example.shape)])


def _is_close(first: torch.Tensor, step: torch.Tensor) -> bool:
    if first.shape != step.shape:
        return False
    if not first.numel() or not first.is_floating_point():
        return bool((first == step).all())
    return bool((first - step).abs().max() <= _CLOSE * first.abs().max())


__all__ = ["StateWarning", "first_call_note", "zeros_of"]
