"""Large tensors in files: what is moved there, and what stays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from t2n_core.torch_graph import tensors_on_disk as on_disk
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk, tensors_on_disk


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_disk, "LARGE", 1024)


def in_file(tensor: torch.Tensor) -> bool:
    """Return whether the memory of a tensor is that of a file without a name."""
    address = tensor.untyped_storage().data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= address < end:
            return line.endswith("(deleted)")
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs the maps of Linux")
def test_large_results_are_in_files() -> None:
    weights = torch.randn(40, 30)
    with tensors_on_disk():
        halves, part, doubled = weights.half(), weights[:20], torch.cat([weights, weights])
        changed = weights.mul_(2)
        drawn = torch.empty(40, 30).normal_()
        little = torch.zeros(3)
    assert [in_file(tensor) for tensor in (halves, doubled, drawn)] == [True] * 3
    assert [in_file(tensor) for tensor in (weights, part, changed, little)] == [False] * 4
    assert torch.equal(halves, (weights / 2).half())
    assert torch.equal(doubled, torch.cat([weights, weights]) / 2)
    assert changed is weights
    assert part.data_ptr() == weights.data_ptr()
    assert drawn.std() > 0.5
    assert not in_file(weights.half()), "the mode has ended"


def test_a_view_of_a_parameter_stays_one() -> None:
    """As `nn.Embedding` clears the row of its padding."""
    parameter = torch.nn.Parameter(torch.ones(40, 30))
    with tensors_on_disk(), torch.no_grad():
        parameter[2].fill_(0)
        embedding = torch.nn.Embedding(40, 30, padding_idx=2)
    assert not parameter[2].any()
    assert not embedding.weight[2].any()
    assert embedding.weight[3].any()


def test_a_full_disk_leaves_tensors_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    tensor = tensor_on_disk((40, 30), torch.bfloat16)
    assert not in_file(tensor)
    assert (tensor.shape, tensor.dtype) == ((40, 30), torch.bfloat16)


def test_nothing_is_left_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tensor = tensor_on_disk((40, 30), torch.float64).fill_(3)
    assert not list(tmp_path.iterdir())
    assert (tensor == 3).all()
