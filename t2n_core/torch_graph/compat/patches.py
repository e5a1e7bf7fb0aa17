"""Temporary replacements of PyTorch's own functions."""

from __future__ import annotations

import builtins
import functools
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from t2n_core.torch_graph.compat.private import missing_name_error


@contextmanager
def replaced(path: str, make: Callable[[Any], Any], *, optional: bool = False) -> Iterator[None]:
    """While active, the object at a dotted path (`torch.fx.proxy.CapturedTraceback`) is the result of `make` for it.

    Raises TorchVersionError if the installed PyTorch has no such name. With `optional`, for a replacement that only
    saves time or noise, PyTorch is then left as it is.
    """
    owner, _, name = path.rpartition(".")
    holder = _resolve(owner)
    plain = getattr(holder, name, getattr(builtins, name, None))
    if holder is None or plain is None:
        if not optional:
            raise missing_name_error(path)
        yield
        return
    with patch.object(holder, name, make(plain), create=True):
        yield


@functools.cache
def _resolve(path: str) -> Any:
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None
