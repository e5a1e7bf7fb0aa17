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
    seen = [one for one in faults if one.found]
    errors = [one.error for one in faults if not one.found]
    assert len(seen) + errors.count("InterfaceError") >= 8
    assert [(one.where, one.found) for one in seen if not one.is_right] == []


def test_a_statement_that_an_erratum_forbids_is_the_engines(
    tmp_path: Path, tract_engine: Callable[[str], TractRunner]
) -> None:
    seen = [one for one in engine.of_hazards(RELEASES, tract_engine, tmp_path) if one.found]
    assert len(seen) >= 15
    assert [(one.where, one.found) for one in seen if not one.is_right] == []


def test_a_net_without_the_repair_of_a_quirk_is_the_engines(
    tmp_path: Path, resolved_engine: Callable[[str], Any]
) -> None:
    resolved_engine(NEWEST)
    seen = [one for one in engine.of_quirks((NEWEST,), tmp_path) if one.found]
    assert seen
    assert [(one.where, one.found) for one in seen if not one.is_right] == []
