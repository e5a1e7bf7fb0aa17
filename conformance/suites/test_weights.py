"""Suite `weights`: weights that the archive stores as float16, bytes or blocks of 4 bits, by themselves and mixed.

The reference is PyTorch with the rounded weights. What a release cannot read stays as it is, which the export has to
tell: such a cell proves that, and the values of float32.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import pytest
import torch

from conformance.cases.weights import CHOICES, FORMATS, NETS
from t2n_core import ModelExport

CELLS = [(net, format) for net in NETS for format in FORMATS]
CELLS += [(net, choice) for net in ("residual", "decoder") for choice in CHOICES if choice not in FORMATS]


@lru_cache(maxsize=1)
def export_of(name: str) -> ModelExport:
    """Captured once for all engines and formats: they follow each other."""
    torch.manual_seed(zlib.crc32(name.encode()))
    net = NETS[name]
    return ModelExport(net.make().eval(), net.inputs(), dynamic_axes=net.axes)


@pytest.mark.parametrize(
    ("net", "choice"),
    [
        pytest.param(
            net, choice, id=f"{net}-{choice}", marks=pytest.mark.nnef_export(target="tract", weights=CHOICES[choice])
        )
        for net, choice in CELLS
    ],
)
def test_weights(net: str, choice: str, nnef_export: Any) -> None:
    result = nnef_export(export_of(net))
    matrices = {label for label, weight in result.export.source.weights.items() if weight.dim() > 1}
    stored = {label for label, _ in result.stored}
    notes = " ".join(result.notes)
    if choice in ("float16", "int8"):
        assert {id(result.export.source.weights[label]) for label in matrices} == {
            id(result.export.source.weights[label]) for label in stored
        }
    elif choice == "q4_0" and not stored:
        assert "stay" in notes, "what stays float32 is reported"
    result.assert_parity("approximate")
