"""Suite `several_archives`: models that are several archives, proven as one against their own loops.

All are small and have random weights. Models of transformers need it: `tox -e models` has it. Only engines are
downloaded.
"""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch

if TYPE_CHECKING:
    from t2n_core.program import Program

FAMILIES = ["transducers", "recognisers", "voice"]
if importlib.util.find_spec("transformers") is not None:
    importlib.import_module("conformance.cases.models.libraries")  # before the library itself
    FAMILIES.append("multimodal")

CASES: dict[str, Callable[[], Any]] = {}
for family in FAMILIES:
    CASES.update(importlib.import_module(f"conformance.cases.several_archives.{family}").CASES)


@pytest.mark.nnef_program(target="tract")
@pytest.mark.parametrize("name", list(CASES))
def test_several_archives(name: str) -> Program:
    torch.manual_seed(zlib.crc32(name.encode()))
    return CASES[name]()  # type: ignore[no-any-return]
