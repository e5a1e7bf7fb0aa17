"""Suite `models`: architectures of torchvision, timm, transformers and torchaudio, small and with random weights.

Needs these packages: `tox -e models`. Nothing is downloaded but the engines.
"""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from functools import lru_cache
from typing import Any

import pytest

from conformance.suites.model_cases import ModelCase
from t2n_core import ModelExport

LIBRARIES = ("torchvision", "timm", "transformers", "torchaudio")

for _package in LIBRARIES:
    if importlib.util.find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed; run `tox -e models`", allow_module_level=True)

importlib.import_module("conformance.suites.model_libraries")  # before the libraries themselves


def all_cases() -> dict[str, ModelCase]:
    """By name: `torchvision-resnet18`."""
    found: dict[str, ModelCase] = {}
    for library in LIBRARIES:
        cases = importlib.import_module(f"conformance.suites.model_cases_{library}").CASES
        found.update({f"{library}-{name}": case for name, case in cases.items()})
    return found


CASES = all_cases()


@lru_cache(maxsize=1)
def export_of(name: str) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    case = CASES[name]
    model, inputs = case.build(zlib.crc32(name.encode()))
    return ModelExport(model, inputs, dynamic_axes=case.dynamic_axes)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(CASES))
def test_model(name: str, nnef_export: Any) -> None:
    nnef_export(export_of(name)).assert_parity("approximate")
