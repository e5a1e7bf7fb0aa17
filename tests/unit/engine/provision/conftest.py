"""An empty cache of engines for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.engine.provision import resolution, store


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_verified", set())
    for module in (store, resolution):
        monkeypatch.setattr(module, "known_wheels", dict)
