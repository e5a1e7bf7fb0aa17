"""Everything that is replaced in Python and PyTorch while torch.export runs a model, and put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.flex_attention import dense_flex_attention
from t2n_core.torch_graph.compat.patches import swaps
from t2n_core.torch_graph.constraints.guards import Decisions
from t2n_core.torch_graph.overrides.as_eager import eager_padding
from t2n_core.torch_graph.overrides.python_calls import python_calls_of_sizes
from t2n_core.torch_graph.overrides.registry import replace_patched
from t2n_core.torch_graph.overrides.symbolic_math import keep_math_symbolic


@contextmanager
def capturing(
    module: torch.nn.Module, decisions: Decisions, modes: Sequence[TorchFunctionMode], *, is_dynamic: bool
) -> Iterator[None]:
    """While active, `module` can be captured: `decisions` records guards, and the last mode sees a call first.

    `is_dynamic` is True if there are dynamic axes.
    """
    with ExitStack() as stack:
        functions = stack.enter_context(preserve_containers(module))
        swap = stack.enter_context(swaps())
        replace_patched(swap)
        decisions.record(swap)
        if is_dynamic:  # choosing a fused kernel compares widths; attention stays one node
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(python_calls_of_sizes(functions))
        keep_math_symbolic(swap)
        stack.enter_context(eager_padding(module))
        stack.enter_context(dense_flex_attention())
        for mode in modes:
            stack.enter_context(mode)
        yield
