"""Run the model itself on its example, to tell an error of the model from one of the export."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.errors import refusal_to_run
from t2n_core.torch_graph.compat.private import pytree
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.frontend.training import evaluating, reads_training


def refusal_of_example(source: Source, inputs: ModelInputs) -> InputError | None:
    """Return the error of a model that PyTorch cannot run on its example; None if it runs.

    Buffers, containers of the model, arguments and the random state stay as they are. An operator without a kernel on
    this machine is no error of the example.
    """
    try:
        run_unchanged(source, inputs, inputs.tensors)
    except NotImplementedError:
        return None
    except Exception as cause:
        refusal = refusal_to_run(cause, source.name, "example")
        refusal.__cause__ = cause
        return refusal
    return None


def refusal_of_training(source: Source, inputs: ModelInputs) -> InputError | None:
    """Return the error of a model in training mode that computes something else in evaluation mode; None otherwise.

    Only modules whose own code reads `training` are checked: layers of PyTorch that differ in training are refused by
    their operators, and all others need no further run.
    """
    if source.is_script or source.program is not None:
        return None
    if not any(reads_training(type(module)) for module in source.module.modules() if module.training):
        return None
    try:
        trained = run_unchanged(source, inputs, inputs.tensors)
        with evaluating(source.module):
            evaluated = run_unchanged(source, inputs, inputs.tensors)
    except Exception:
        return None  # the export itself reports a model that fails in one of the modes
    if are_equal(trained, evaluated):
        return None
    message = f"{source.name} is in training mode, and computes something else in evaluation mode"
    return InputError(message, hint="call model.eval() before exporting")


def run_unchanged(source: Source, inputs: ModelInputs, tensors: Sequence[torch.Tensor]) -> Any:
    """Return the results of the model for these tensors instead of the example's.

    Buffers, containers of the model, arguments and the random state stay as they are.
    """
    args, kwargs = inputs.arguments_with([tensor.detach().clone() for tensor in tensors])
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(preserve_containers(source.module))
        if source.is_script:
            return source.run(args, kwargs)
        return source.run_with(_copies(source.module), args, kwargs)


def run_once(source: Source, inputs: ModelInputs, tensors: Sequence[torch.Tensor]) -> Any:
    """Return the results of the model for these tensors; arguments and the random state stay as they are."""
    args, kwargs = inputs.arguments_with([tensor.detach().clone() for tensor in tensors])
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return source.run(args, kwargs)


def are_equal(value: Any, other: Any) -> bool:
    """Return whether two results have the same parts, up to rounding."""
    (first, structure), (second, other_structure) = pytree.tree_flatten(value), pytree.tree_flatten(other)
    return structure == other_structure and all(map(_is_equal, first, second))


def _is_equal(value: Any, other: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
        return isinstance(value, torch.Tensor) == isinstance(other, torch.Tensor)
    return value.shape == other.shape and value.dtype == other.dtype and torch.allclose(value, other, equal_nan=True)


def _copies(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of the buffers under all their names; one buffer is one copy."""
    copies: dict[int, torch.Tensor] = {}
    named_buffers = list(module.named_buffers(remove_duplicate=False))
    for _, buffer in named_buffers:
        copies.setdefault(id(buffer), buffer.detach().clone())
    return {name: copies[id(buffer)] for name, buffer in named_buffers}
