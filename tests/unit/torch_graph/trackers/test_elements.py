"""Elements of small tensors, followed through functions of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from t2n_core.torch_graph.trackers.elements import elements_after_write, elements_of_results, of_data

A, B = torch.tensor([[3, 5, 2], [7, 4, 11]]), torch.tensor([6, 1, 9])
FLOATS = torch.tensor([0.5, 2.25, -1.0])
CALLS: list[tuple[Callable[..., Any], str, tuple[Any, ...]]] = [
    (torch.tensor, "tensor", ([[1, 2], [3, 4]],)),
    (torch.stack, "stack", ([B, A[0]],)),
    (torch.cat, "cat", ([A, B[None]],)),
    (torch.Tensor.unbind, "unbind", (A, 1)),
    (torch.Tensor.__getitem__, "getitem", (A, (slice(None), -1))),
    (torch.Tensor.flip, "flip", (A, (0, 1))),
    (torch.Tensor.expand_as, "expand_as", (B, A)),
    (torch.Tensor.split, "split", (B, [1, 2])),
    (torch.Tensor.to, "to", (A, torch.float32)),
    (torch.Tensor.new_zeros, "new_zeros", (A, (2,))),
    (torch.full, "full", ((2, 2), 4)),
    (torch.Tensor.prod, "prod", (A, 1)),
    (torch.Tensor.cumsum, "cumsum", (A, 0)),
    (torch.Tensor.sum, "sum", (A,)),
    (torch.Tensor.amax, "amax", (A, 1)),
    (torch.Tensor.min, "min", (A,)),
    (torch.Tensor.sub, "sub", (A, B)),
    (torch.Tensor.sub, "sub", (FLOATS, 0.5)),
    (torch.Tensor.__rsub__, "rsub", (B, 9)),
    (torch.Tensor.__rfloordiv__, "rfloordiv", (B, 20)),
    (torch.Tensor.floor_divide, "floor_divide", (A, -2)),
    (torch.Tensor.remainder, "remainder", (A, -3)),
    (torch.Tensor.maximum, "maximum", (A, B)),
]


def of_tensor(tensor: torch.Tensor) -> Any:
    return of_data(tensor.tolist(), lambda _: None)


@pytest.mark.parametrize(
    ("function", "name", "arguments"), CALLS, ids=[f"{name}-{i}" for i, (_, name, _) in enumerate(CALLS)]
)
def test_elements_are_those_of_pytorch(function: Any, name: str, arguments: Any) -> None:
    result = function(*arguments)
    pairs = elements_of_results(function, name, arguments, {}, result, of_tensor)
    assert [leaf.tolist() for leaf, _ in pairs] == [elements.tolist() for _, elements in pairs]
    assert len(pairs) == (len(result) if isinstance(result, tuple) else 1)


@pytest.mark.parametrize(
    ("function", "name", "arguments"),
    [
        (torch.Tensor.__getitem__, "getitem", (A, torch.tensor([1]))),
        (torch.Tensor.to, "to", (FLOATS, torch.int64)),
        (torch.Tensor.to, "to", (A, torch.float16)),
        (torch.Tensor.mul, "mul", (B, 0.29)),
        (torch.Tensor.view, "view", (A, torch.int32)),
        (torch.Tensor.max, "max", (A, 1)),
        (torch.Tensor.exp, "exp", (FLOATS,)),
        (torch.zeros, "zeros", (100_000,)),
    ],
)
def test_what_is_not_followed(function: Any, name: str, arguments: Any) -> None:
    assert not elements_of_results(function, name, arguments, {}, function(*arguments), of_tensor)


def test_writes() -> None:
    empty = elements_of_results(torch.empty, "empty", ((2, 2),), {}, torch.zeros(2, 2, dtype=torch.int64), of_tensor)
    ((tensor, elements),) = empty
    assert elements.tolist() == [[None, None], [None, None]]
    first = elements_after_write(tensor, elements, (0, 1), np.array(7, dtype=object))
    assert first is not None
    second = elements_after_write(tensor, first, slice(1, 2), np.array(5, dtype=object))
    assert second is not None
    assert second.tolist() == [[None, 7], [5, 5]]
    assert elements_after_write(tensor, first, (0, 0), np.array(0.5, dtype=object)) is None
    assert elements_after_write(tensor, first, torch.tensor(0), np.array(3, dtype=object)) is None
