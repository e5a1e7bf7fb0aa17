"""Suite `models`: architectures of torchvision, timm, transformers and torchaudio, small and with random weights.

`test_registry` has language models from transformers' registry that lack a separate case.
Needs these packages: `tox -e models`. Nothing is downloaded but the engines.
"""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from functools import lru_cache
from typing import Any

import pytest
import torch

from conformance.cases.models import LIBRARIES
from conformance.cases.models.case import ModelCase
from conformance.checks.at_one import cut_to_one, in_rows
from t2n_core import ModelExport
from t2n_core.parity.judging.float16_level import LARGEST
from t2n_core.torch_graph.frontend.pytree.structure import leaves

_MOVED = 4 * LARGEST
"""Share of its largest number by which an output differs at least with other inputs."""
for _package in LIBRARIES:
    if importlib.util.find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed; run `tox -e models`", allow_module_level=True)

importlib.import_module("conformance.cases.models.libraries")  # before the libraries themselves


def all_cases() -> dict[str, ModelCase]:
    """By name: `torchvision-resnet18`."""
    cases_by_name: dict[str, ModelCase] = {}
    for library in LIBRARIES:
        cases = importlib.import_module(f"conformance.cases.models.{library}").CASES
        cases_by_name.update({f"{library}-{name}": case for name, case in cases.items()})
    return cases_by_name


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


REGISTRY: dict[str, ModelCase] = importlib.import_module("conformance.cases.models.transformers.registry").CASES


@lru_cache(maxsize=1)
def export_of_family(name: str) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    model, inputs = REGISTRY[name].build(zlib.crc32(name.encode()))
    return ModelExport(model, inputs, dynamic_axes=REGISTRY[name].dynamic_axes)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(REGISTRY))
def test_registry(name: str, nnef_export: Any) -> None:
    nnef_export(export_of_family(name)).assert_parity("approximate")


BATCHES = {1, 2, 3, 5}


@lru_cache(maxsize=1)
def export_of_one_row(name: str) -> ModelExport:
    """From an example of batch 1, with a dynamic batch; besides at two other batches, drawn from the full example."""
    case = CASES[name]
    model, inputs = case.build(zlib.crc32(name.encode()))
    axes = case.axes_with_batch(inputs)
    batches = [of[0] for of in axes.values()]
    example = cut_to_one(inputs, axes, batches)
    more = [in_rows(inputs, axes, batches, count) for count in sorted(BATCHES - {1})]
    return ModelExport(model, example, dynamic_axes=axes, extra_inputs=more)


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(CASES))
def test_model_traced_at_1(name: str, nnef_export: Any) -> None:
    outcome = nnef_export(export_of_one_row(name)).assert_parity("approximate")
    assert {size for sizes in outcome.sizes for symbol, size in sizes.items() if symbol == "B"} >= BATCHES


@pytest.mark.parametrize("name", list(CASES))
def test_outputs_tell_inputs_apart(name: str) -> None:
    """With other inputs each output differs by far more than any level allows: a pass of zeros would prove nothing."""
    case = CASES[name]
    model, inputs = case.build(zlib.crc32(name.encode()))
    with torch.no_grad():
        pairs = zip(leaves(model(**inputs)), leaves(model(**case.inputs())), strict=True)
    for output, other in pairs:
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            continue
        output, other = (t.nan_to_num(0.0, 0.0, 0.0) for t in (output, other))
        assert float((output - other).abs().max()) >= _MOVED * max(1.0, float(output.abs().max()))
