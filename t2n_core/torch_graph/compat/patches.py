"""Temporary replacements of PyTorch's own functions."""

from __future__ import annotations

import builtins
import functools
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from t2n_core.torch_graph.compat.private import missing_name_error

_ABSENT = object()


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
    with swapped(holder, name, make(plain)):
        yield


@contextmanager
def swapped(owner: Any, name: str, new: Any) -> Iterator[None]:
    """While active, an attribute of a module or class is another object; what it had itself comes back, or nothing.

    `unittest.mock.patch.object` does the same and takes several times as long, which shows in captures of small models.
    """
    held = vars(owner).get(name, _ABSENT)  # not by getattr, which would turn a static method into a function
    setattr(owner, name, new)
    try:
        yield
    finally:
        if held is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, held)


@functools.cache
def _resolve(path: str) -> Any:
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None
