"""The driver in the folder of a program runs where only numpy and the wheel of tract are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.cases.several_archives.transducers import rnnt
from t2n_core import TractNNEF
from t2n_core.program import export_program
from tests.bare import bare_packages, run_alone


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_packages(tmp_path_factory.mktemp("packages"))


def test_a_folder_of_a_transducer_becomes_tokens(bare: Path, tmp_path: Path) -> None:
    torch.manual_seed(4)
    program = rnnt()
    export_program(program, TractNNEF("0.23", check_io=False), tmp_path / "rnnt")
    for example in program.examples:
        np.savez(tmp_path / "inputs.npz", **{name: tensor.numpy() for name, tensor in example.items()})
        run_alone(bare, "rnnt/driver.py", "rnnt", "inputs.npz", "outputs.npz", folder=tmp_path)
        tokens = np.load(tmp_path / "outputs.npz")["tokens"]
        assert tokens.tolist() == program.expected(example)["tokens"].tolist()
        assert len(set(tokens.tolist())) > 1, "tokens that prove little"
