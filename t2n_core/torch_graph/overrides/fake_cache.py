"""Skip contiguity checks of torch.export on symbolic sizes, whose results are never read.

PyTorch checks for every result whether it is contiguous, in each memory format, for metadata that it calls best effort.
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


__all__ = ["cheaper_capture"]
