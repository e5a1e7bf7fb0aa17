"""Suite `reported`: nets with patterns that public reports say other exporters refuse, or get wrong.

Each is checked at all its sizes, with inputs as its users have them.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import pytest
import torch

from conformance.cases.reported import positions, signals, sizes, tables
from t2n_core import ModelExport

NETS = {**sizes.CASES, **tables.CASES, **positions.CASES, **signals.CASES}


@lru_cache(maxsize=2)
def export_of(name: str) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    torch.manual_seed(zlib.crc32(name.encode()))
    net = NETS[name]
    return ModelExport(
        net.make().eval(),
        net.inputs(net.sizes[0]),
        dynamic_axes=net.axes,
        extra_inputs=net.inputs,
        sizes=[..., *net.sizes[1:]],
    )


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(NETS))
def test_reported(name: str, nnef_export: Any) -> None:
    outcome = nnef_export(export_of(name)).assert_parity("approximate")
    checked = [dict(sizes) for sizes in outcome.sizes]
    assert all(dict(sizes) in checked for sizes in NETS[name].sizes), checked
