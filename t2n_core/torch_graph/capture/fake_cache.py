"""Skip contiguity checks of torch.export on symbolic sizes, whose results are never read.

PyTorch checks for every result whether it is contiguous, in each memory format, for metadata that it calls best effort.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from t2n_core.torch_graph.compat.patches import replaced


@contextmanager
def cheaper_capture() -> Iterator[None]:
    """While active, nodes record no memory format. A release of PyTorch without this function is left as it is."""
    with replaced("torch.fx.experimental.proxy_tensor._extract_tensor_metadata", _without_contiguity, optional=True):
        yield


def _without_contiguity(describe: Callable[..., Any]) -> Callable[..., Any]:
    return functools.partial(describe, include_contiguity=False)


__all__ = ["cheaper_capture"]
