"""Tables that a model keeps by sizes, and rows of a tensor that it reads, changes and writes back by a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from conformance.cases.reported.case import Function, ReportedNet, batch_and_time

_TABLES: dict[Any, Tensor] = {}


class Table(nn.Module):
    """Add a table that is kept in a dict under a key."""

    def __init__(self, key: Callable[[Tensor], Any], shared: bool = False, gets: bool = False) -> None:
        super().__init__()
        self.key, self.gets = key, gets
        self.tables: dict[Any, Tensor] = _TABLES if shared else {}
        self.tables.clear()

    def forward(self, x: Tensor) -> Tensor:
        key = self.key(x)
        if self.gets:
            table = self.tables.get(key)
            if table is None:
                table = self.tables[key] = torch.arange(x.shape[1])
            return x + table[:, None]
        if key not in self.tables:
            self.tables[key] = torch.arange(x.shape[1])
        return x + self.tables[key][:, None]


class LastTable(nn.Module):
    """Add a table that is kept in an attribute, along with the length it was made for."""

    length: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.length != x.shape[1]:
            self.length, self.table = x.shape[1], torch.arange(x.shape[1])
        return x + self.table[:, None]


TABLES: dict[str, Callable[[], nn.Module]] = {
    "int": lambda: Table(lambda x: x.shape[1]),
    "tuple": lambda: Table(lambda x: (x.shape[1], 1)),
    "shape": lambda: Table(lambda x: x.shape),
    "text": lambda: Table(lambda x: f"{x.shape[1]}"),
    "of the module": lambda: Table(lambda x: x.shape[1], shared=True),
    "get": lambda: Table(lambda x: x.shape[1], gets=True),
    "attribute": LastTable,
}


def _column(m: Any, x: Tensor) -> Tensor:
    values = m.linear(x)[:, 0]
    rows, mask = torch.zeros((x.shape[0], 2)), values > 0
    rows[mask, 0] = values[mask]
    return rows


def _constants(m: Any, x: Tensor) -> Tensor:
    mask, rows = m.linear(x)[:, 0] > 0, x.clone()
    rows[mask, 0] = 7.0
    rows[~mask, 1:3] = -1.0
    return rows


def _flipped(m: Any, x: Tensor) -> Tensor:
    y, mask = m.linear(x), x[:, 0] > 0
    y[mask] = y[mask].flip(-1)
    return y


def _scaled(m: Any, x: Tensor) -> Tensor:
    y = m.linear(x)
    y[x > 0] *= 0.2
    return y


def _logarithm(m: Any, x: Tensor) -> Tensor:
    y = m.linear(x)
    y[y > 0] = torch.log1p(y[y > 0])
    return y


def _rows(m: Any, x: Tensor) -> Tensor:
    y, mask = m.linear(x), x[:, 0] > 0
    y[mask] = y[mask] * 2 + 1
    return y


def _indices(m: Any, x: Tensor) -> Tensor:
    y = m.linear(x)
    y[torch.where(x[:, 0] > 0)[0]] = 0.0
    return y


WRITES = {
    "a column": _column,
    "constants": _constants,
    "flipped rows": _flipped,
    "scaled elements": _scaled,
    "logarithm of elements": _logarithm,
    "rows": _rows,
    "by the indices of a mask": _indices,
}


def _written(function: Callable[[Any, Tensor], Tensor]) -> ReportedNet:
    return ReportedNet(
        lambda: Function(function, linear=nn.Linear(5, 5)),
        lambda s: {"x": torch.randn(s["B"], 5)},
        {"x": {0: "B"}},
        [{"B": b} for b in (6, 1, 2, 5, 20)],
    )


CASES: dict[str, ReportedNet] = {
    **{f"a table by sizes: {name}": batch_and_time(make, 3) for name, make in TABLES.items()},
    **{f"written back by a mask: {name}": _written(function) for name, function in WRITES.items()},
}
