"""`dynamic_axes` that names outputs: it is compared with what the export finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from tests.releases import NEWEST


class Frames(nn.Module):
    """Halves the time axis, and gives the sum over it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x * 2, torch.cat([x, x], 1), x.sum(1)


def export(outputs: dict[str, Any], **options: Any) -> ModelExport:
    axes = {"x": {1: "T"}, **outputs}
    names = {"output_names": ["same", "twice", "sum"], **options}
    return ModelExport(Frames(), {"x": torch.randn(2, 6, 3)}, dynamic_axes=axes, **names)


@pytest.mark.parametrize(
    "outputs",
    [
        {"same": {1: "T"}},
        {"same": {-2: "T"}, "twice": {1: 2 * Dim("T")}},
        {"same": [1], "twice": [1]},
        {"twice": {1: "U", 0: None}},
        {"sum": {0: None}},
    ],
)
def test_what_is_found_may_be_declared(outputs: dict[str, Any], tmp_path: Path) -> None:
    result = export(outputs).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    assert result.assert_parity().passed
    assert str(result.range) == "T >= 1"


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ({"same": {1: "T"}, "sum": {1: "T"}}, "axis 1 of the output `sum` is 3, and is declared as T"),
        ({"twice": {1: "T"}}, r"axis 1 of the output `twice` is 2\*T, and is declared as T"),
        ({"sum": [0]}, "axis 0 of the output `sum` is 2, and is declared as dynamic"),
        ({"same": {1: None}}, "axis 1 of the output `same` is T, and is declared as static"),
        ({"same": {3: "T"}}, "the output `same` has rank 3, there is no axis 3"),
        ({"sum": {"0": "T"}}, "`sum` has no axis '0'"),
        ({"summ": {0: "T"}}, "dynamic_axes names `summ`; the inputs are x, the outputs same, twice, sum"),
    ],
)
def test_what_is_not_found_is_refused(outputs: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _ = export(outputs).captured


def test_a_target_may_declare_them(tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, dynamic_axes={"x": {1: "T"}, "output_0": {1: "T"}})
    one = ModelExport(Frames(), {"x": torch.randn(2, 6, 3)})
    assert one.to(target, tmp_path / "m.tar").output_names == ["output_0", "output_1", "output_2"]
