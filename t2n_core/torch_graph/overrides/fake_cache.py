"""Skip work of torch.export whose results are never read.

PyTorch checks for every result whether it is contiguous, in each memory format, for metadata that it calls best effort.
And each of its passes over a graph writes the graph as Python code and compiles it, six times for one capture.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from t2n_core.torch_graph.overrides.registry import patch


@patch(
    "torch.fx.experimental.proxy_tensor._extract_tensor_metadata",
    reason="memory formats of symbolic sizes take long to find, and nobody reads them",
    optional=True,
)
def cheaper_capture(describe: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that describes a node, without memory formats."""
    return functools.partial(describe, include_contiguity=False)


@patch(
    "torch.fx.graph_module.GraphModule.recompile",
    reason="each pass of torch.export compiles its graph, and nobody calls the result",
    optional=True,
)
def compile_at_first_call(recompile: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `recompile` for graph modules that leaves the code of those without any to their first call."""

    def compile_and_call(module: Any, *args: Any, **kwargs: Any) -> Any:
        recompile(module)
        return module(*args, **kwargs)

    def defer(module: Any) -> Any:
        if "_code" in vars(module):  # also a module of the user, which stays as complete as it is
            return recompile(module)
        described = getattr(module.graph._codegen, "pytree_info", None)
        if described is not None:
            module._in_spec, module._out_spec = described.in_spec, described.out_spec
        type(module).forward = compile_and_call
        return None

    return defer
