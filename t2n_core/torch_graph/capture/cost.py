"""Skip work of torch.export on symbolic sizes whose results are never read.

PyTorch keeps the result of every operator on fake tensors, to give it again for the same shapes, and makes a second
tensor each time to learn whether it may. That takes as long as the operator itself, and a model with many different
shapes asks for few results again. So a result is kept the second time that it is computed. PyTorch also asks of every
result whether it is contiguous, in each memory format, for a note that it calls best effort.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from t2n_core.torch_graph.compat.patches import replaced


@contextmanager
def cheaper_capture() -> Iterator[None]:
    """While active, results of symbolic sizes are kept when they are computed again, and nodes note no memory format.

    A PyTorch without these functions does its work as ever.
    """
    with (
        replaced("torch._subclasses.fake_tensor.FakeTensorMode._make_cache_entry", _when_repeated, optional=True),
        replaced("torch.fx.experimental.proxy_tensor._extract_tensor_metadata", _without_contiguity, optional=True),
    ):
        yield


def _without_contiguity(describe: Callable[..., Any]) -> Callable[..., Any]:
    return functools.partial(describe, include_contiguity=False)


def _when_repeated(keep: Callable[..., Any]) -> Callable[..., Any]:
    seen: set[Any] = set()

    def make_entry(mode: Any, state: Any, key: Any, *call: Any) -> Any:
        if state.cache_on_shape_env() and key not in seen:
            seen.add(key)
            return None  # counts as no entry
        return keep(mode, state, key, *call)

    return make_entry


__all__ = ["cheaper_capture"]
