"""The model's own run on its example: what PyTorch refuses is no fault of the export."""

from __future__ import annotations

from contextlib import ExitStack

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.sizes.refusals import refusal_to_run
from t2n_core.torch_graph.ways_in.inputs import ModelInputs
from t2n_core.torch_graph.ways_in.sources import Source


def refusal_of_example(source: Source, inputs: ModelInputs) -> InputError | None:
    """Return the error of a model that PyTorch does not run on its example; None if it runs.

    Buffers, containers of the model, arguments and the state of random numbers stay as they are. An operator that has
    no kernel here says nothing of the example.
    """
    args, kwargs = inputs.replaced([tensor.detach().clone() for tensor in inputs.tensors])
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.random.fork_rng(devices=[]))
            stack.enter_context(preserve_containers(source.module))
            if source.is_script:
                source.run(args, kwargs)
            else:
                source.run_with(_copies(source.module), args, kwargs)
    except NotImplementedError:
        return None
    except Exception as cause:
        refusal = refusal_to_run(cause, source.name, "example")
        refusal.__cause__ = cause
        return refusal
    return None


def _copies(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of the buffers under all their names; one buffer is one copy."""
    copies: dict[int, torch.Tensor] = {}
    named = list(module.named_buffers(remove_duplicate=False))
    for _, buffer in named:
        copies.setdefault(id(buffer), buffer.detach().clone())
    return {name: copies[id(buffer)] for name, buffer in named}


__all__ = ["refusal_of_example"]
