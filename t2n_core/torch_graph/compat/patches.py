"""Replacements of PyTorch's own functions for the time of a block."""

from __future__ import annotations

import builtins
import functools
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from t2n_core.torch_graph.compat.private import absent


@contextmanager
def replaced(path: str, make: Callable[[Any], Any], *, optional: bool = False) -> Iterator[None]:
    """While active, the name at a dotted path (`torch.fx.proxy.CapturedTraceback`) is what `make` returns for it.

    Raises TorchVersionError if the installed PyTorch has no such name; with `optional`, for a replacement that saves
    time or noise alone, PyTorch is left as it is then.
    """
    owner, _, name = path.rpartition(".")
    holder = _resolve(owner)
    plain = getattr(holder, name, getattr(builtins, name, None))
    if holder is None or plain is None:
        if not optional:
            raise absent(path)
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
