"""Everything that is replaced in Python and PyTorch while torch.export runs a model, and put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from t2n_core.torch_graph.capture.as_eager import eager_padding, skip_mask_checks
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.fake_cache import cheaper_capture
from t2n_core.torch_graph.capture.stack_traces import short_stack_traces
from t2n_core.torch_graph.constraints.guards import Decisions
from t2n_core.torch_graph.overrides.index_by_tensor import numbers_as_indices
from t2n_core.torch_graph.overrides.pool_ceil_mode import pools_of_any_size
from t2n_core.torch_graph.overrides.python_calls import python_calls_of_sizes
from t2n_core.torch_graph.overrides.symbolic_math import numbers_of_sizes


@contextmanager
def capturing(
    module: torch.nn.Module, decisions: Decisions, modes: Sequence[TorchFunctionMode], *, is_dynamic: bool
) -> Iterator[None]:
    """While active, `module` can be captured: `decisions` records guards, and the last mode sees a call first.

    `is_dynamic` is True if there are dynamic axes.
    """
    with ExitStack() as stack:
        functions = stack.enter_context(preserve_containers(module))
        stack.enter_context(short_stack_traces())
        stack.enter_context(cheaper_capture())
        stack.enter_context(decisions.recording())
        stack.enter_context(skip_mask_checks())
        if is_dynamic:  # choosing a fused kernel compares widths; attention stays one node
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(python_calls_of_sizes(functions))
        stack.enter_context(numbers_of_sizes())
        stack.enter_context(numbers_as_indices())
        stack.enter_context(pools_of_any_size())
        stack.enter_context(eager_padding(module))
        for mode in modes:
            stack.enter_context(mode)
        yield


__all__ = ["capturing"]
