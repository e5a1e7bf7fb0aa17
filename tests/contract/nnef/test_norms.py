"""A norm over one axis as the engine's own operator, which has the bits of what the engine makes of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.nnef.tract.forms import sums
from tests.contract.sizes.test_size_ranges import run
from tests.nets import OfFunction
from tests.releases import NEWEST

SPECIAL = (0.0, -0.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
NORMS: dict[str, nn.Module] = {
    "layer_norm": nn.LayerNorm(40),
    "rms_norm": nn.RMSNorm(40, eps=1e-6),
    "a small eps": nn.LayerNorm(40, eps=1e-44),
    "instance_norm": nn.InstanceNorm1d(5),
}


def export(model: nn.Module, version: str, folder: Path) -> ExportResult:
    export = ModelExport(model.eval(), (torch.randn(3, 5, 40),), input_names=["x"], dynamic_axes={"x": {0: "B"}})
    return export.to(TractNNEF(version, check_io=False), folder / "model.nnef.tar")


def has_operator(result: ExportResult) -> bool:
    return any(operation.name == "tract_core_rms_norm" for operation in result.graph.operations)


def inputs() -> list[tuple[Tensor]]:
    torch.manual_seed(5)
    x = torch.randn(4, 5, 40)
    tensors = [x, x * 1e20, x * 1e-22, torch.zeros_like(x)]
    for number in SPECIAL:
        tensors.append(x.clone())
        tensors[-1][1, 2, 3] = number
    return [(tensor,) for tensor in tensors]


@pytest.mark.parametrize("version", ["0.23.1", "0.23.5", NEWEST])
@pytest.mark.parametrize("name", NORMS)
def test_the_operator_has_the_bits_of_its_parts(
    name: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = export(NORMS[name], version, tmp_path)
    assert has_operator(result)
    actual = run(result, inputs()).outputs
    monkeypatch.setattr(sums, "norm", lambda g, value, axes, eps, inverse: g.mul(value, inverse))
    parts = export(NORMS[name], version, tmp_path)
    assert not has_operator(parts)
    expected = run(parts, inputs()).outputs
    assert [[array.tobytes() for array in each] for each in actual] == [
        [a.tobytes() for a in each] for each in expected
    ]
    result.assert_parity("approximate")


@pytest.mark.parametrize(
    ("version", "model"),
    [
        ("0.22.4", nn.LayerNorm(40)),
        ("0.23.0", nn.LayerNorm(40)),
        (NEWEST, nn.LayerNorm(40, eps=0.0)),  # of which the engine computes the parts
        (NEWEST, OfFunction(lambda x: nn.functional.rms_norm(x.repeat(1, 1, 250), [10_000]))),
        (NEWEST, OfFunction(lambda x: nn.functional.layer_norm(x.double(), [40]))),
    ],
    ids=["0.22", "0.23.0", "without eps", "a long row", "float64"],
)
def test_norms_that_the_engine_does_not_find_stay_parts(version: str, model: nn.Module, tmp_path: Path) -> None:
    assert not has_operator(export(model, version, tmp_path))


@pytest.mark.parametrize(
    ("version", "size", "axes", "reduced"),
    [
        (NEWEST, 64, {0: "B"}, [2]),
        (NEWEST, 65, {0: "B"}, [2, 3]),
        (NEWEST, 64, None, [2, 3]),
        ("0.23.3", 64, {0: "B"}, [2, 3]),
    ],
)
def test_short_rows_of_dynamic_number_are_summed_alone(
    version: str, size: int, axes: dict[int, str] | None, reduced: list[int], tmp_path: Path
) -> None:
    export = ModelExport(
        nn.LayerNorm(size), (torch.randn(3, 5, size),), input_names=["x"], dynamic_axes={"x": axes or {}}
    )
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert [op.arguments["axes"] for op in result.graph.operations if op.name == "mean_reduce"] == [reduced]
    result.assert_parity("approximate")
