"""Exports with rewriters, proven on an old and a new engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from t2n_core import ModelExport, TractNNEF
from t2n_core.export.result import ExportResult
from tests.releases import NEWEST

VERSIONS = ("0.21.19", NEWEST)


@pytest.fixture
def proven(tmp_path: Path) -> Callable[..., ExportResult]:
    """`proven(model, args, *rewriters, **options)`: exported, run in both engines, equal to the unchanged model."""

    def export(model: torch.nn.Module, args: Any, *rewriters: Any, **options: Any) -> ExportResult:
        shared = ModelExport(model.eval(), args, rewriters=rewriters, **{"strict_rewrites": True, **options})
        for version in VERSIONS:
            result = shared.to(TractNNEF(version), tmp_path / f"{version}.nnef.tar")
            result.assert_parity("approximate")
        return result

    return export


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 5, 4)
