"""CPU time of an export against the number of nodes; the floor is the capture alone."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.lab.measure.nets.exported import CHAIN_LENGTHS, EXPORTED, build, chain
from t2n_core import TractNNEF, export_model_to_nnef

VERSION = "0.23.9"
pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tables that are read once per process are not part of an export's time."""
    model, x = chain(1)
    path = tmp_path_factory.mktemp("warm") / "chain.nnef.tar"
    export_model_to_nnef(model, (x,), path, TractNNEF(VERSION, check_io=False))
    warnings.filterwarnings("ignore", category=DeprecationWarning)


@pytest.mark.parametrize("length", CHAIN_LENGTHS)
def test_ours(length: int, benchmark: Any, tmp_path: Path) -> None:
    model, x = chain(length)
    path = tmp_path / "chain.nnef.tar"

    def export() -> None:
        export_model_to_nnef(model, (x,), path, TractNNEF(VERSION, check_io=False))

    benchmark.pedantic(export, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("length", CHAIN_LENGTHS)
def test_torch_export(length: int, benchmark: Any) -> None:
    model, x = chain(length)
    benchmark.pedantic(lambda: torch.export.export(model, (x,), strict=False), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("net", EXPORTED)
def test_ours_of_net(net: str, benchmark: Any, tmp_path: Path) -> None:
    model, x = build(net)
    path = tmp_path / "net.nnef.tar"

    def export() -> None:
        export_model_to_nnef(model, (x,), path, TractNNEF(VERSION, check_io=False))

    benchmark.pedantic(export, rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("net", EXPORTED)
def test_torch_export_of_net(net: str, benchmark: Any) -> None:
    model, x = build(net)
    benchmark.pedantic(lambda: torch.export.export(model, (x,), strict=False), rounds=3, warmup_rounds=1)
