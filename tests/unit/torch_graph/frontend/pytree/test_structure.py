"""Containers are taken apart as PyTorch's pytrees do it, and rebuilt."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch

from t2n_core.torch_graph.compat.private import pytree
from t2n_core.torch_graph.frontend.pytree.structure import leaves, leaves_with_path, map_leaves

Pair = namedtuple("Pair", "one two")
X = [torch.full((size,), float(size)) for size in range(1, 7)]
VALUES: dict[str, Any] = {
    "a tuple": (X[0], [X[1], X[2]], {"b": X[3], "a": (X[4],)}),
    "other objects": [1, None, "text", X[0], {3: X[1], "none": None}],
    "empty containers": ((), [], {}, {"a": []}),
    "kinds of containers": OrderedDict(z=Pair(X[0], (X[1],)), a=[X[2]]),
    "a parameter": {"weight": torch.nn.Parameter(X[3])},
    "a leaf": X[5],
}


@pytest.mark.parametrize("name", VALUES)
def test_parts_are_those_of_pytorch(name: str) -> None:
    value = VALUES[name]
    plain, form = pytree.tree_flatten(value, is_leaf=lambda inner: inner is None)
    leaf_list = leaves(value)
    assert len(leaf_list) == len(plain)
    assert all(leaf is other for leaf, other in zip(leaf_list, plain, strict=True))
    rebuilt = map_leaves(value, lambda leaf: leaf)
    assert pytree.tree_structure(rebuilt, is_leaf=lambda inner: inner is None) == form


def test_paths_are_keys_indices_and_names() -> None:
    leaves_by_path = dict(leaves_with_path((VALUES["a tuple"], VALUES["kinds of containers"])))
    assert list(leaves_by_path) == [
        (0, 0), (0, 1, 0), (0, 1, 1), (0, 2, "b"), (0, 2, "a", 0), (1, "z", "one"), (1, "z", "two", 0), (1, "a", 0)
    ]  # fmt: skip


def test_usual_containers_need_no_pytree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytree, "tree_flatten", lambda *_, **__: pytest.fail("a pytree"))
    changed = map_leaves(VALUES["a tuple"], lambda leaf: leaf + 1)
    assert torch.equal(changed[2]["a"][0], X[4] + 1)
