"""Suite `dynamic`: nets whose sizes vary, each checked at 1, the traced size and others, alone and together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch

from conformance.cases.dynamic import LONGER, NETS
from conformance.checks.at_one import export_at_one
from t2n_core import ModelExport


@lru_cache(maxsize=2)
def export_of(name: str) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    torch.manual_seed(sum(map(ord, name)))
    case = NETS[name]
    return ModelExport(case.make().eval(), case.inputs(), dynamic_axes=case.axes)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(NETS))
def test_dynamic(name: str, nnef_export: Any) -> None:
    outcome = nnef_export(export_of(name)).assert_parity("approximate")
    for symbol in {symbol for axes in NETS[name].axes.values() for symbol in axes.values()}:
        assert len({sizes[symbol] for sizes in outcome.sizes}) >= 3, f"{symbol} was hardly varied: {outcome.sizes}"


@lru_cache(maxsize=2)
def export_of_one(name: str) -> ModelExport:
    """Captured once for all engines, from an example of size 1."""
    torch.manual_seed(sum(map(ord, name)))
    case = NETS[name]
    return export_at_one(case.make().eval(), case.inputs(), case.axes)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", [name for name in NETS if name not in LONGER])
def test_dynamic_traced_at_1(name: str, nnef_export: Any) -> None:
    outcome = nnef_export(export_of_one(name)).assert_parity("approximate")
    assert 1 in outcome.sizes[0].values()
