"""Options of the capture and of the check after an export, on real engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.errors import InputError, ParityError
from tests.contract.options.exports import Two, every_line, exported, text_of
from tests.releases import NEWEST


@every_line
@pytest.mark.parametrize(
    ("axes", "symbols"),
    [
        ({"x": {0: "B", 1: "T"}, "y": {0: "B", 1: "T"}}, {"B", "T"}),
        ({"x": {-3: "B", -2: "T"}, "y": {-3: "B", -2: "T"}}, {"B", "T"}),
        ({"x": {1: "T"}, "y": {-2: "T"}}, {"T"}),
    ],
    ids=["shared", "negative", "one"],
)
def test_dynamic_axes(axes: Any, symbols: set[str], version: str, tmp_path: Path) -> None:
    """Two inputs share symbols; the outputs have sizes that are expressions of them."""
    args = (torch.randn(2, 5, 3), torch.randn(2, 5, 3))
    outcome = exported(Two(), args, TractNNEF(version, dynamic_axes=axes), tmp_path).assert_parity()
    assert {name for sizes in outcome.sizes for name in sizes} == symbols
    for name in symbols:
        tried = {sizes[name] for sizes in outcome.sizes}
        assert {1, 5 if name == "T" else 2} <= tried
        assert len(tried) >= 4
    if len(symbols) > 1:
        traced = outcome.sizes[0]
        assert any(all(sizes[n] != traced[n] for n in symbols) for sizes in outcome.sizes)


def test_dynamic_axes_as_a_list(tmp_path: Path) -> None:
    """Symbols are made from the input's name and the axis."""
    target = TractNNEF("0.21.19", dynamic_axes={"input": [0, -2]})
    result = exported(nn.LayerNorm(3), torch.randn(2, 5, 3), target, tmp_path)
    assert {line for line in text_of(result.archive).splitlines() if "symbol" in line} == {
        "extension tract_symbol input_dim0;",
        "extension tract_symbol input_dim1;",
    }
    assert {name for sizes in result.assert_parity().sizes for name in sizes} == {"input_dim0", "input_dim1"}


def test_dynamic_axes_of_a_second_target_must_agree(tmp_path: Path) -> None:
    export = ModelExport(nn.ReLU(), torch.randn(2, 5), dynamic_axes={"input": {0: "B"}})
    export.to(TractNNEF(NEWEST, dynamic_axes={"input": {-2: "B"}}), tmp_path / "m.tgz").assert_parity()
    with pytest.raises(InputError, match="differ from those of this export"):
        export.to(TractNNEF(NEWEST, dynamic_axes={"input": {1: "T"}}), tmp_path / "m.tgz")


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
