"""Options of the check after an export, on real engines."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import TractNNEF, export_model_to_nnef
from t2n_core.errors import InputError, ParityError
from tests.releases import NEWEST


def test_check_io(tmp_path: Path) -> None:
    """With `exact`, a product of 300 terms fails; without a check the archive is written and no engine is asked."""
    model, args, path = nn.Linear(300, 4).eval(), torch.randn(3, 300) * 100, tmp_path / "model.nnef.tgz"
    with pytest.raises(ParityError):
        export_model_to_nnef(model, args, path, TractNNEF(NEWEST, check_io_tolerance="exact"))
    assert not path.exists()
    export_model_to_nnef(model, args, path, TractNNEF(NEWEST, check_io_tolerance="exact", check_io=False))
    assert path.exists()


def test_check_io_tolerance(tmp_path: Path) -> None:
    model, args, path = nn.Linear(300, 4).eval(), torch.randn(3, 300) * 100, tmp_path / "model.nnef.tgz"
    for level in ("exact", "close"):
        with pytest.raises(ParityError, match=f"beyond `{level}`"):
            export_model_to_nnef(model, args, path, TractNNEF(NEWEST, check_io_tolerance=level))
    for level in ("approximate", "very", "super", "ultra"):
        assert export_model_to_nnef(model, args, path, TractNNEF(NEWEST, check_io_tolerance=level)).archive.exists()
    with pytest.raises(InputError, match="is not a tolerance level"):
        TractNNEF(NEWEST, check_io_tolerance="near")
