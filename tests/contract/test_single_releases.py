"""Cases that releases between the newest ones of their lines compute otherwise than all others, or abort on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from t2n_core import TractNNEF
from tests.contract.cases import Case, all_cases

BETWEEN = {
    "conv/conv_transpose1d, 1 every 1, 2 groups": ("0.21.8", "0.21.10"),
    "conv/conv_transpose1d, 1 every 2, 2 groups": ("0.21.8", "0.21.10"),
    "conv/conv_transpose2d, one place, groups": ("0.21.8", "0.21.10"),
    "matmul/einsum over a computed size": ("0.20.22", "0.21.7"),
    "arithmetic/sub of a mean": ("0.21.7", "0.21.8", "0.21.10"),
    "arithmetic/sub of a mean dynamic": ("0.21.7", "0.21.8", "0.21.10"),
    "matmul/matmul of a middle": ("0.20.3", "0.20.22", "0.21.5"),
    "matmul/matmul over halves": ("0.21.5", "0.21.7", "0.21.8"),
    "sorting/sort a long axis of three": ("0.21.9", "0.21.10"),
    "sorting/topk of a long axis": ("0.20.22", "0.21.9"),
    "arithmetic/div trunc by 64 of torch.int32": ("0.21.6", "0.23.0", "0.23.8"),
}


@cache
def _cases() -> dict[str, Case]:
    return {case.name: case for case in all_cases()}


@pytest.mark.parametrize(("name", "version"), [(n, v) for n, versions in BETWEEN.items() for v in versions])
def test_the_numbers_are_right_there_too(name: str, version: str, tmp_path: Path) -> None:
    case = _cases()[name]
    case.export().to(TractNNEF(version), tmp_path / "model.nnef.tar").assert_parity(case.level)
