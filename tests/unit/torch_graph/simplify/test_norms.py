"""Batch norms folded into what is before them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.registry import load_default, op
from tests.contract.cases.norm import Shared
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST, check_io=False)


def kinds(
    model: nn.Module, *shape: int, dtype: torch.dtype = torch.float32, target: TractNNEF = TARGET, **options: Any
) -> list[str]:
    export = ModelExport(model.eval(), (torch.randn(shape, dtype=dtype),), **options)
    return [op.kind.split(".")[0] for op in export.simplified(target).op_nodes]


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)), (2, 3, 7)),
        (nn.Sequential(nn.Conv2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6, affine=False)), (2, 4, 5, 6)),
        (nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)), (4, 5)),
    ],
)
def test_a_norm_of_a_product_is_part_of_it(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert len(kinds(model, *shape)) == 1


def test_writing_in_place_elsewhere_in_the_model_changes_nothing() -> None:
    """PyTorch writes such a model anew, and the norm then as its variant with three results."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    assert kinds(model, 2, 3, 7, 6) == ["aten::conv2d", "aten::relu"]


@pytest.mark.parametrize(
    ("make", "shape", "dtype"),
    [
        (lambda: nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(4)), (2, 4, 5), torch.float32),
        (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.BatchNorm1d(4)), (2, 3, 7), torch.float32),
        (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)).half(), (2, 3, 7), torch.float16),
        (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4, track_running_stats=False)), (2, 3, 7), None),
    ],
    ids=["another axis", "something between", "float16", "statistics of the batch"],
)
def test_it_stays_where_it_is_no_scaling_of_filters(
    make: Callable[[], nn.Module], shape: tuple[int, ...], dtype: torch.dtype | None
) -> None:
    assert "aten::batch_norm" in kinds(make(), *shape, dtype=dtype or torch.float32)


def test_a_product_that_others_read_stays() -> None:
    assert kinds(Shared(), 2, 3, 7).count("aten::batch_norm") == 1


def test_numbers_that_would_overflow_stay() -> None:
    model = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4))
    with torch.no_grad():
        model[0].weight.fill_(1e38)
        model[1].weight.fill_(1e3)
    assert "aten::batch_norm" in kinds(model, 2, 3, 7)


def test_a_rule_of_the_user_is_used() -> None:
    rules = load_default().copy()
    rules.remove("aten::batch_norm")

    @op("aten::batch_norm", registry=rules)
    def batch_norm(g: Emitter, input: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                   training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Value:  # fmt: skip
        return input

    model = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4))
    assert "aten::batch_norm" in kinds(model, 2, 3, 7, rules=rules)


def test_the_capture_serves_other_targets_as_it_was(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU()).eval()
    export = ModelExport(model, (torch.randn(2, 3, 7),))
    before = [str(op) for op in export.captured.graph.op_nodes]
    for name in ("a", "b"):
        graph = export.to(TARGET, tmp_path / f"{name}.nnef.tar").graph
        labels = [operation.arguments["label"] for operation, _ in graph.variables()]
        assert set(labels) == {"0.weight.normed", "0.bias.normed"}
    assert [str(op) for op in export.captured.graph.op_nodes] == before


def test_a_folded_filter_and_bias_are_weights_of_the_archive(tmp_path: Path) -> None:
    """Computed in float64 and rounded once."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 4, (3, 2), bias=False), nn.BatchNorm2d(4)).eval()
    with torch.no_grad():
        for tensor in (model[1].running_mean, model[1].running_var, model[1].weight, model[1].bias):
            tensor.copy_(torch.rand(4) + 0.5)
    graph = ModelExport(model, (torch.randn(2, 3, 7, 6),)).to(TARGET, tmp_path / "m.nnef.tar").graph
    weights = {operation.arguments["label"]: value.weight.array() for operation, value in graph.variables()}
    exact = torch.nn.utils.fusion.fuse_conv_bn_eval(model[0].double(), model[1].double())
    assert weights.keys() == {"0.weight.normed", "1.bias.normed"}
    assert (weights["0.weight.normed"] == exact.weight.detach().float().numpy()).all()
    assert (weights["1.bias.normed"] == exact.bias.detach().float().numpy()).all()
    assert [o.name for o in graph.operations if o.name != "variable"] == ["external", "reshape", "conv"]


def test_a_norm_by_itself_is_a_scale_and_a_shift(tmp_path: Path) -> None:
    graph = ModelExport(nn.BatchNorm2d(4).eval(), (torch.randn(2, 4, 7, 6),)).to(TARGET, tmp_path / "m.nnef.tar").graph
    assert [o.name for o in graph.operations if o.name != "variable"] == ["external", "mul", "add"]


@pytest.mark.parametrize(
    ("version", "count"), [("0.20.22", 1), ("0.21.10", 1), ("0.21.19", 2), ("0.22.4", 2), ("0.23.0", 2), (NEWEST, 1)]
)
def test_large_stored_filters_are_left_where_the_engine_would_scale_them_at_every_run(version: str, count: int) -> None:
    model = nn.Sequential(nn.Conv2d(1024, 1024, 1), nn.BatchNorm2d(1024))
    target = TractNNEF(version, check_io=False, weights="float16")
    assert len(kinds(model, 1, 1024, 2, 2, target=target)) == count
    assert len(kinds(model, 1, 1024, 2, 2, target=TractNNEF(version, check_io=False))) == 1
