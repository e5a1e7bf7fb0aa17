"""Lengths of packed sequences as an input: one archive, right at every length from 1 to the padded one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import LowerError
from tests.contract.cases.packed import NETS, Net
from tests.releases import LINES, NEWEST

STEPS, BATCH = 4, 3
EVERY_LENGTHS = list(itertools.product(range(1, STEPS + 1), repeat=BATCH))


def inputs_of(lengths: tuple[int, ...], dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Return signed numbers [T, B, 4] and the lengths [B]."""
    made = torch.Generator().manual_seed(sum(n * 10**i for i, n in enumerate(lengths)))
    return {"x": torch.randn(STEPS, BATCH, 4, generator=made).to(dtype), "lengths": torch.tensor(lengths)}


def export_of(net: nn.Module, dtype: torch.dtype = torch.float32, **options: Any) -> ModelExport:
    torch.manual_seed(0)
    return ModelExport(net.eval().to(dtype), inputs_of((2, 4, 3), dtype), **options)


@pytest.mark.parametrize("version", LINES)
@pytest.mark.parametrize("kind", NETS)
def test_every_length(kind: str, version: str, tmp_path: Path) -> None:
    """Also where the time and the batch are dynamic."""
    axes = {"x": {0: "T", 1: "B"}, "lengths": {0: "B"}}
    further = [tuple(inputs_of(lengths).values()) for lengths in EVERY_LENGTHS]
    export = export_of(Net(NETS[kind]()), dynamic_axes=axes, extra_inputs=further)
    result = export.to(TractNNEF(version), tmp_path / "m.nnef.tar")
    assert len(result.samples) > len(EVERY_LENGTHS)
    result.assert_parity("approximate")


@pytest.mark.parametrize("capture", ["export", "trace"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_dtypes_and_captures(dtype: torch.dtype, capture: str, tmp_path: Path) -> None:
    further = [tuple(inputs_of(lengths, dtype).values()) for lengths in EVERY_LENGTHS[::7]]
    export = export_of(Net(NETS["lstm"]()), dtype, capture=capture, extra_inputs=further)
    export.to(TractNNEF(NEWEST), tmp_path / "m.nnef.tar").assert_parity("approximate")


def test_khronos_refuses_them(tmp_path: Path) -> None:
    """Its standard sorts nothing, and compares no integers."""
    with pytest.raises(LowerError, match="cannot compare integers"):
        ModelExport(Net(nn.GRU(4, 7), ordered=True).eval(), inputs_of((4, 3, 2))).to(
            KhronosNNEF(), tmp_path / "m.nnef.tar"
        )
