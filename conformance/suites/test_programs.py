"""Suite `programs`: small functions, layers and structures, one per kind of case that suites of exporters have."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch

from conformance.cases.programs import PROGRAMS
from t2n_core import ModelExport


@lru_cache(maxsize=2)
def export_of(name: str, fixed: bool = False) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    case = PROGRAMS[name]
    torch.manual_seed(sum(map(ord, name)))
    axes = {} if fixed else case.axes
    return ModelExport(case.make().eval(), case.inputs(), input_names=list(axes) or None, dynamic_axes=axes or None)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program(name: str, nnef_export: Any) -> None:
    nnef_export(export_of(name), **PROGRAMS[name].target).assert_parity("approximate")


@pytest.mark.nnef_export(target="khronos")
@pytest.mark.parametrize("name", [name for name, case in PROGRAMS.items() if case.in_standard])
def test_program_in_the_standard(name: str, nnef_export: Any) -> None:
    """Check a program with fixed sizes, in operators of the standard alone."""
    nnef_export(export_of(name, fixed=True)).assert_parity("approximate")
