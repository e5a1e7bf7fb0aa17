"""The table of known wheels."""

from __future__ import annotations

import pytest

from t2n_core.engine.provision import known


def test_the_newest_of_each_line_by_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "known_wheels", lambda: dict.fromkeys(("0.10.1", "0.9.10", "0.10.0", "0.9.9")))
    assert known.newest_of_lines.__wrapped__() == ("0.9.10", "0.10.1")
