"""`einsum` as one product of matrices where it is one, and by PyTorch's decomposition elsewhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST, OLDEST, on_each_line

SIZES = {"b": 2, "t": 5, "h": 3, "s": 4, "c": 6, "d": 2}
PRODUCTS = [
    "btc,bsc->bts", "btc,bcs->bst", "b t h c, b s h c -> b h t s", "bhts,bshc->bthc", "tbhc,sbhc->bhts",
    "bcsh,bcst->btch", "tc,cs->ts", "tc,sc->st", "bsth,bshcd->bthcd", "bthc,bshc->bts",
]  # fmt: skip
OTHERS = [
    "btc,bsc->bt",
    "btc,cs->bts",
    "btc,hcd->bthd",
    "b...c,bcs->b...s",
    "btt,bts->bs",
    "btc,btc->bt",
    "btc,btc->btc",
    "btc->bct",
    "bt,sc->btsc",
]


class Einsum(nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, *given: Tensor) -> Tensor:
        return torch.einsum(self.equation, *given)


def tensors(equation: str, sizes: dict[str, int], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    torch.manual_seed(3)
    operands = equation.partition("->")[0].replace(" ", "").replace("...", "h").split(",")
    return [torch.randn([sizes[letter] for letter in letters]).to(dtype) for letters in operands]


def result(equation: str, version: str, folder: Path, dtype: torch.dtype = torch.float32) -> Counter[str]:
    """Prove an archive with free b and t at several sizes, and return its operators."""
    operands = equation.partition("->")[0].replace(" ", "").replace("...", "h").split(",")
    axes = {
        f"x{at}": {axis: {"b": "B", "t": "T"}[letter] for axis, letter in enumerate(letters) if letter in "bt"}
        for at, letters in enumerate(operands)
    }
    example = dict(zip(axes, tensors(equation, SIZES, dtype), strict=True))
    net = Einsum(equation)
    others = [tuple(tensors(equation, {**SIZES, "b": b, "t": t}, dtype)) for b, t in ((1, 1), (3, 7))]
    export = ModelExport(
        net.eval(), tuple(example.values()), input_names=list(axes), dynamic_axes=axes, extra_inputs=others
    )
    export_result = export.to(TractNNEF(version), folder / "model.nnef.tar")
    export_result.assert_parity("approximate")
    return Counter(operation.name for operation in export_result.graph.operations)


@pytest.mark.parametrize("version", on_each_line(OLDEST, "0.21.19", NEWEST))
@pytest.mark.parametrize("equation", PRODUCTS)
def test_a_product_of_matrices_is_one(equation: str, version: str, tract_engine: Any, tmp_path: Path) -> None:
    tract_engine(version)
    counts = result(equation, version, tmp_path)
    assert counts["matmul"] == 1
    assert counts["reshape"] <= (2 if equation in ("bsth,bshcd->bthcd", "bthc,bshc->bts") else 0)


@pytest.mark.parametrize("equation", OTHERS)
def test_other_sums_are_decomposed(equation: str, tmp_path: Path) -> None:
    result(equation, NEWEST, tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64])
def test_other_dtypes(dtype: torch.dtype, tmp_path: Path) -> None:
    result("bthc,bshc->bhts", NEWEST, tmp_path, dtype)


def test_an_axis_of_one_element_is_repeated(tmp_path: Path) -> None:
    net = Einsum("bij,bjk->bik")
    example = (torch.randn(1, 3, 4), torch.randn(5, 4, 2))
    ModelExport(net.eval(), example).to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity("approximate")
