"""Leave nothing of a capture in a model: what its code stored while it ran is removed again, also after an error.

A model that caches what it computes (in a dict, an attribute, a helper object, a closure, a global or an `lru_cache`)
would otherwise keep the fake tensors of capture, which hold no data.
"""

from __future__ import annotations

import gc
import itertools
import operator
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import Any

import torch

from t2n_core.torch_graph.compat.private import FakeTensor
from t2n_core.torch_graph.reachable import Reachable, contents_of

_NOTHING = object()
"""Stands for a name or a cell without a value."""


@contextmanager
def preserve_containers(model: torch.nn.Module) -> Iterator[list[FunctionType]]:
    """Restore what the block changes in the objects of a model and in what its code reaches; weights are ignored.

    Yields the functions that the model reaches.

    The model's own objects are always restored. Globals, classes and closures of its code are restored only if a fake
    tensor got into one of them, and an `lru_cache` with a fake tensor in it is cleared.
    """
    reachable = Reachable()
    reachable.follow(model)
    objects = _Snapshot(reachable)
    beyond = Reachable(_seen=reachable._seen, _code=reachable._code)
    beyond.follow_code()
    code = _Snapshot(beyond)
    caches = [(cache, cache.cache_info().misses) for cache in beyond.caches]
    try:
        yield beyond.functions()
    finally:
        objects.restore()
        if any(_is_fake(value) for value in code.changed()):
            code.restore()
        for cache, misses in caches:
            if cache.cache_info().misses != misses and _is_fake(gc.get_referents(cache)):
                cache.cache_clear()


def replace_stored(model: torch.nn.Module, replacement: Callable[[Any], Any]) -> None:
    """Replace values that are stored in the objects of a model and in what its code reaches, at any depth of a tuple.

    An `lru_cache` that holds such a value is cleared.

    Args:
        model: the module; its parameters are ignored.
        replacement: returns the replacement of a value, or the value itself if it may stay.
    """
    reachable = Reachable()
    reachable.follow(model)
    reachable.follow_code()
    for container in reachable.contents:
        if isinstance(container, dict):
            items = [
                (_replace_in(key, replacement), _replace_in(value, replacement))
                for key, value in contents_of(container)
            ]
        else:
            items = [_replace_in(value, replacement) for value in contents_of(container)]
        refill(container, items)
    for cell in reachable.cells:
        value = _cell_content(cell)
        if (new := _replace_in(value, replacement)) is not value:
            cell.cell_contents = new
    for owner, name in reachable.names:
        value = _get_name(owner, name)
        if (new := _replace_in(value, replacement)) is not value:
            _set_name(owner, name, new)
    for cache in reachable.caches:
        if any(_replace_in(value, replacement) is not value for value in _contents(gc.get_referents(cache))):
            cache.cache_clear()


def _replace_in(value: Any, replacement: Callable[[Any], Any]) -> Any:
    if not isinstance(value, tuple):
        return replacement(value)
    parts = [_replace_in(part, replacement) for part in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    return value._make(parts) if hasattr(value, "_make") else type(value)(parts)


class _Snapshot:
    """The values that containers, cells and names hold at one moment."""

    def __init__(self, reachable: Reachable) -> None:
        self._contents = [(container, contents_of(container)) for container in reachable.contents]
        self._cells = [(cell, _cell_content(cell)) for cell in reachable.cells]
        self._names = [(owner, name, _get_name(owner, name)) for owner, name in reachable.names]

    def changed(self) -> Iterator[Any]:
        """Yield the current values of containers, cells and names whose value has changed."""
        for container, before in self._contents:
            if not _is_same(container, before):
                yield container
        for cell, content in self._cells:
            if _cell_content(cell) is not content:
                yield _cell_content(cell)
        for owner, name, value in self._names:
            if _get_name(owner, name) is not value:
                yield _get_name(owner, name)

    def restore(self) -> None:
        for container, before in self._contents:
            refill(container, before)
        for cell, content in self._cells:
            if _cell_content(cell) is not content:
                if content is _NOTHING:
                    del cell.cell_contents
                else:
                    cell.cell_contents = content
        for owner, name, value in self._names:
            if _get_name(owner, name) is not value:
                _set_name(owner, name, value)


def refill(container: Any, contents: list[Any]) -> None:
    """Replace the contents of a container, unless they are the same objects."""
    if not _is_same(container, contents):
        container.clear()
        if isinstance(container, dict | set):
            container.update(contents)
        else:
            container.extend(contents)


def _is_same(container: Any, before: list[Any]) -> bool:
    contents = contents_of(container)
    if len(contents) != len(before):
        return False
    if isinstance(container, dict):
        contents, before = ([*itertools.chain.from_iterable(pairs)] for pairs in (contents, before))
    return all(map(operator.is_, contents, before))


def _cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def _get_name(owner: Any, name: str) -> Any:
    if isinstance(owner, dict):
        return owner.get(name, _NOTHING)
    return vars(owner).get(name, _NOTHING) if isinstance(owner, type) else getattr(owner, name, _NOTHING)


def _set_name(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    elif value is _NOTHING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _is_fake(value: Any) -> bool:
    """Return whether a value is a fake tensor or a symbolic size, or holds one."""
    return any(isinstance(part, FakeTensor | torch.SymInt) for part in _contents(value))


def _contents(value: Any) -> Iterator[Any]:
    """Yield a value and what its containers and objects hold, at any depth."""
    ahead, seen = [value], set[int]()
    while ahead:
        value = ahead.pop()
        yield value
        if id(value) in seen or isinstance(value, torch.Tensor | type | str):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            ahead += [part for pair in contents_of(value) for part in pair]
        elif isinstance(value, list | tuple | set | frozenset | deque):
            ahead += contents_of(value)
        elif isinstance(getattr(value, "__dict__", None), dict):
            ahead += vars(value).values()
