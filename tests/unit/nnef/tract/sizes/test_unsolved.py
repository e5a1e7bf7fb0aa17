"""Symbols of their own for axes that the engine would compare with nothing."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from tests.nets import net_of

T = Dim("T")


def graph_of(axes: Any, version: str, folder: Path) -> str:
    example = tuple(torch.randn(2, size, 4) for _, size in axes.values())
    dynamic = {name: {1: axis} for name, (axis, _) in axes.items()}
    target = TractNNEF(version, check_io=False)
    net = net_of(lambda _, x, y: x.sum(1) - y.sum(1))
    archive = ModelExport(net, example, dynamic_axes=dynamic).to(target, folder / "model.nnef.tar").archive
    with tarfile.open(archive) as opened:
        file = opened.extractfile("graph.nnef")
        assert file is not None
        return file.read().decode()


@pytest.mark.parametrize(
    ("version", "axes", "line"),
    [
        ("0.23.0", {"x": (2 * T, 6), "y": (T, 3)}, "range: x_axis_1 == (T*2);"),
        ("0.23.0", {"x": (3 * T, 9), "y": (2 * T, 6)}, "range: x_axis_1 == (T*3);"),
        ("0.23.0", {"x": (T, 3), "y": (2 * T, 6)}, ""),
        ("0.22.4", {"x": (2 * T, 6), "y": (T, 3)}, ""),
    ],
)
def test_what_the_range_says_of_a_multiple(version: str, axes: Any, line: str, tmp_path: Path) -> None:
    text = graph_of(axes, version, tmp_path)
    assert ("x_axis_1" in text) == bool(line)
    assert line in text
    assert "y_axis_1" not in text
