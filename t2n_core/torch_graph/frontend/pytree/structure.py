"""Nested arguments and results: PyTorch's pytrees (dicts, tuples, ModelOutput), and any dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from t2n_core.torch_graph.compat.private import pytree

Path = tuple[Any, ...]
"""Keys, indices and field names from the outside in."""


def leaves_with_path(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield everything that is not a container, with its path."""
    parts = _parts(value)
    if parts is None:
        yield path, value
        return
    for key, part in parts[0]:
        yield from leaves_with_path(part, (*path, key))


def leaves(value: Any) -> list[Any]:
    return [leaf for _, leaf in leaves_with_path(value)]


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return `value` with every leaf passed through `change`, in order."""
    parts = _parts(value)
    if parts is None:
        return change(value)
    items, rebuild = parts
    return rebuild([map_leaves(part, change) for _, part in items])


def _parts(value: Any) -> tuple[list[tuple[Any, Any]], Callable[[list[Any]], Any]] | None:
    """Return the direct parts of a container, and a function that rebuilds it from new parts; None for a leaf."""
    kind = type(value)  # the usual ones first: PyTorch's pytrees take many times as long
    if kind is torch.Tensor:
        return None
    if kind is tuple or kind is list:
        return list(enumerate(value)), kind
    if kind is dict:
        return list(value.items()), lambda new: dict(zip(value, new, strict=True))
    if _is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if f.init]
        return [(n, getattr(value, n)) for n in names], lambda parts: dataclasses.replace(
            value, **dict(zip(names, parts, strict=True))
        )
    if value is None or pytree.tree_is_leaf(value):
        return None
    parts, form = pytree.tree_flatten(value, is_leaf=lambda inner: inner is not value)
    try:
        paths, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda inner: inner is not value)
        keys = [_key(path[-1]) for path, _ in paths]
    except ValueError:  # a class registered without names of its parts
        keys = list(range(len(parts)))
    return list(zip(keys, parts, strict=True)), lambda new: pytree.tree_unflatten(new, form)


def _is_dataclass(value: Any) -> bool:
    is_registered = type(value) in pytree.SUPPORTED_NODES
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and not is_registered


def _key(key: Any) -> Any:
    return getattr(key, "idx", getattr(key, "key", getattr(key, "name", None)))
