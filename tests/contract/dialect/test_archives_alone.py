"""Archives that are right by PyTorch are so by the definitions of their operators, on inputs drawn for them.

These are some of all cases, and all of them in `tox -e nightly`; those that the dialects of tract and of
NNEF 1.0 define otherwise; and narrow ranges.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from t2n_core import InferenceTarget, KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import T2NError
from t2n_core.level import TractCheckTolerance
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.parity.definitions import check_by_definitions, samples_by_definitions
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from tests.contract.cases import Case, all_cases
from tests.contract.usage import exported
from tests.nets import OfFunction
from tests.releases import NEWEST

SHARE = 120
"""One of so many cases is always taken."""
TARGETS = {
    "tract": TractNNEF(NEWEST, check_io=False),
    "khronos": KhronosNNEF(check_io=False),
    "tract-0.21": TractNNEF("0.21.19", check_io=False),
}
ALWAYS = ("tract", "khronos")


def cells() -> Iterator[Any]:
    """Yield each case with each target. Those of one case follow each other, so that one capture serves them all."""
    for case in all_cases():
        is_selected = zlib.crc32(case.name.encode()) % SHARE == 0
        for target in TARGETS if not case.refusal else ():
            marks = [] if is_selected and target in ALWAYS else [pytest.mark.nightly]
            yield pytest.param(case, target, id=f"{case.name}-{target}", marks=marks)


def judged_alone(export: ModelExport, target: InferenceTarget, path: Path, level: str = "approximate") -> Outcome:
    """Return the outcome of a check without the model, after one with it.

    A level below the usual one is for the inputs of the case, and not for those that are drawn.
    """
    result = export.to(target, path / "net.nnef.tar")
    result.assert_parity(level)
    standard = isinstance(target, KhronosNNEF)
    samples = samples_by_definitions(result.archive, standard=standard)
    names = list(read_archive(result.archive).document.outputs)
    usual = max(TractCheckTolerance(level), TractCheckTolerance.APPROXIMATE)
    request = CheckRequest(result.archive, samples, names, Judgement.of(usual))
    return check_by_definitions(target.engine(), request, standard=standard)


@pytest.mark.parametrize(("case", "target"), list(cells()))
def test_cases(case: Case, target: str, tmp_path: Path) -> None:
    try:
        outcome = judged_alone(exported(case), TARGETS[target], tmp_path, case.level)
    except T2NError:
        if target != "khronos":
            raise
        pytest.skip("it cannot be written in NNEF 1.0")
    outcome.raise_for_failure()


@pytest.mark.parametrize("target", ALWAYS)
@pytest.mark.parametrize(("inputs", "outputs", "groups"), [(3, 3, 1), (3, 2, 1), (4, 4, 2)])
def test_transposed_convolutions(inputs: int, outputs: int, groups: int, target: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.ConvTranspose2d(inputs, outputs, 2, stride=2, groups=groups).eval()
    export = ModelExport(net, torch.randn(1, inputs, 4, 4))
    judged_alone(export, TARGETS[target], tmp_path).raise_for_failure()


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_results_of_different_types(version: str, tmp_path: Path) -> None:
    export = ModelExport(OfFunction(lambda x: torch.topk(x, 3)).eval(), torch.randn(2, 400))
    judged_alone(export, TractNNEF(version, check_io=False), tmp_path).raise_for_failure()


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize(("low", "high"), [(3, 600), (10, 20), (100, 300), (100, None)])
def test_narrow_ranges(low: int, high: int | None, version: str, tmp_path: Path) -> None:
    sizes = Dim("T", min=low, max=high)
    export = ModelExport(
        OfFunction(lambda x: x * 2).eval(), torch.randn(2, low + 2), input_names=["x"], dynamic_axes={"x": {1: sizes}}
    )
    outcome = judged_alone(export, TractNNEF(version, check_io=False), tmp_path)
    outcome.raise_for_failure()
    checked = [sample_sizes["T"] for sample_sizes in outcome.sizes]
    assert min(checked) >= low
    assert len(set(checked)) > 1
