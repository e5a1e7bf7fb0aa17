"""A sample of planted faults: the check names the side in which each was planted.

`python -m conformance.lab.plant.blame` plants 200.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.lab.plant.blame import engine, exporter
from t2n_core.engine.pool import TractRunner
from tests.releases import NEWEST

RELEASES = ("0.21.19", NEWEST)


@pytest.mark.parametrize("net", ["perceptron", "gru", "group norm"])
def test_a_graph_that_was_changed_is_the_exporters(
    net: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolved_engine: Callable[[str], Any]
) -> None:
    resolved_engine(NEWEST)
    monkeypatch.setattr(exporter, "RELEASES", (NEWEST,))
    faults = list(exporter.faults(tmp_path, 1, [net]))
    seen = [fault for fault in faults if fault.found]
    errors = [fault.error for fault in faults if not fault.found]
    assert len(seen) + errors.count("InterfaceError") >= 8
    assert [(fault.where, fault.found) for fault in seen if not fault.is_right] == []


def test_a_statement_that_an_erratum_forbids_is_the_engines(
    tmp_path: Path, tract_engine: Callable[[str], TractRunner]
) -> None:
    seen = [fault for fault in engine.of_hazards(RELEASES, tract_engine, tmp_path) if fault.found]
    assert len(seen) >= 15
    assert [(fault.where, fault.found) for fault in seen if not fault.is_right] == []


def test_a_net_without_the_repair_of_a_quirk_is_the_engines(
    tmp_path: Path, resolved_engine: Callable[[str], Any]
) -> None:
    resolved_engine(NEWEST)
    seen = [fault for fault in engine.of_quirks((NEWEST,), tmp_path) if fault.found]
    assert seen
    assert [(fault.where, fault.found) for fault in seen if not fault.is_right] == []
