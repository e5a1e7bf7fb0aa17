"""Exports for the tests of options: the newest release of each line, and what is looked at in an archive."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.registry import Registry, load_default, op
from tests.releases import LINES

every_line = pytest.mark.parametrize("version", LINES)


def exported(model: nn.Module, args: Any, target: TractNNEF, path: Path, **more: Any) -> ExportResult:
    return ModelExport(model.eval(), args, **more).to(target, path / "model.nnef.tgz")


def text_of(archive: Path) -> str:
    with tarfile.open(archive) as tar:
        stream = tar.extractfile("graph.nnef")
        assert stream is not None
        return stream.read().decode()


def operators(result: ExportResult) -> set[str]:
    return {operation.name for operation in result.graph.operations}


def own_relu(write: Callable[[Emitter, Value], Value]) -> Registry:
    rules = load_default().copy()
    rules.remove("aten::relu")

    @op("aten::relu", registry=rules)
    def relu(g: Emitter, self: Value) -> Value:
        return write(g, self)

    return rules


class Two(nn.Module):
    """Outputs of sizes 2 * T + 1 and T * B."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        wide = torch.cat([x, y, x[:, :1]], dim=1)
        return wide.cumsum(1), (x + y).flatten(0, 1).relu()


class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, **self.options)
