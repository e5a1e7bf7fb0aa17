"""Suite `generative`: models that generate tokens, small and with random weights, 32 greedy steps each in the engine.

Needs transformers: `tox -e models` has it. Nothing is downloaded but the engines.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conformance.cases.generative.case import GenerativeCase

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed; run `tox -e models`", allow_module_level=True)

importlib.import_module("conformance.cases.models.libraries")  # before the library itself

FAMILIES = ("decoders", "recurrent", "encoder_decoders")


def all_cases() -> dict[str, GenerativeCase]:
    """Return the cases by name."""
    found: dict[str, GenerativeCase] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(f"conformance.cases.generative.{family}").CASES)
    return found


CASES = all_cases()
