"""Temporary replacements of PyTorch's own functions."""

from __future__ import annotations

import builtins
import functools
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from t2n_core.torch_graph.compat.private import missing_name_error

Swap: TypeAlias = Callable[[Any, str, Any], None]
_ABSENT = object()


@contextmanager
def replaced(path: str, make: Callable[[Any], Any], *, optional: bool = False) -> Iterator[None]:
    """While active, the object at a dotted path (`torch.fx.proxy.CapturedTraceback`) is the result of `make` for it.

    Raises TorchVersionError if the installed PyTorch has no such name. With `optional`, for a replacement that only
    saves time or noise, PyTorch is then left as it is.
    """
    with swaps() as swap:
        replace(swap, path, make, optional=optional)
        yield


def replace(swap: Swap, path: str, make: Callable[[Any], Any], *, optional: bool = False) -> None:
    """Replace an object as `replaced` does, until the block of `swap` ends."""
    owner, _, name = path.rpartition(".")
    holder = _resolve(owner)
    plain = getattr(holder, name, getattr(builtins, name, None))
    if holder is not None and plain is not None:
        swap(holder, name, make(plain))
    elif not optional:
        raise missing_name_error(path)


@contextmanager
def swaps() -> Iterator[Swap]:
    """Yield a function that replaces an attribute of a module or class; what it had itself comes back, or nothing.

    One block for all replacements, since `unittest.mock.patch.object`, and a block for each, take several times as
    long, which shows in captures of small models.
    """
    originals: list[tuple[Any, str, Any]] = []

    def swap(owner: Any, name: str, new: Any) -> None:
        before = vars(owner).get(name, _ABSENT)  # not by getattr, which would turn a static method into a function
        setattr(owner, name, new)
        originals.append((owner, name, before))

    try:
        yield swap
    finally:
        for owner, name, before in reversed(originals):
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


@functools.cache
def _resolve(path: str) -> Any:
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None
