"""Imports of packages that may be missing or large."""

from __future__ import annotations

import gc
import sys

import pytest

from t2n_core.extras import MissingPackageError, paused_gc, require


def test_garbage_is_collected_again_after_imports() -> None:
    with paused_gc():
        assert not gc.isenabled()
        with paused_gc():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_missing_package_is_named_with_its_command_and_none_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    require("t2n export", "json")
    with pytest.raises(MissingPackageError, match="export-llm needs transformers: pip install"):
        require("t2n export-llm", "json", "transformers")
