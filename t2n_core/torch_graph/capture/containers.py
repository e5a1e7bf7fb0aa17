"""Keep a model's lists and dicts as the same objects with the same contents: torch.export replaces them by copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def preserve_containers(model: torch.nn.Module) -> Iterator[None]:
    """Restore every attribute that held a list, tuple, dict or set to that object and its contents after the block.

    A model that caches in a dict what it computes would otherwise keep the fake tensors of capture in it.
    """
    held = [
        (vars(module), name, value)
        for module in model.modules()
        for name, value in vars(module).items()
        if isinstance(value, list | tuple | dict | set)
    ]
    contents: dict[int, tuple[Any, Any]] = {}
    for _, name, value in held:
        if name not in _OWN:
            _note(value, contents)
    try:
        yield
    finally:
        for attributes, name, value in held:
            if name in attributes and attributes[name] is not value:
                attributes[name] = value
        for container, before in contents.values():
            _restore(container, before)


_OWN = frozenset({"_parameters", "_buffers", "_modules", *(n for n in vars(torch.nn.Module()) if "hook" in n)})
"""Attributes of torch.nn.Module itself; capture restores their contents."""


def _note(value: Any, contents: dict[int, tuple[Any, Any]]) -> None:
    if not isinstance(value, list | tuple | dict | set) or id(value) in contents:
        return
    if not isinstance(value, tuple):
        contents[id(value)] = (value, list(value.items()) if isinstance(value, dict) else list(value))
    for item in value.values() if isinstance(value, dict) else value:
        _note(item, contents)


def _restore(container: Any, before: list[Any]) -> None:
    """Restore the contents of a container in place, if they have changed."""
    if isinstance(container, dict):
        now = list(container.items())
        if len(now) != len(before) or any(
            a[0] is not b[0] or a[1] is not b[1] for a, b in zip(now, before, strict=True)
        ):
            container.clear()
            container.update(before)
        return
    if len(container) == len(before) and all(a is b for a, b in zip(container, before, strict=True)):
        return
    if isinstance(container, set):
        container.clear()
        container.update(before)
    else:
        container[:] = before
