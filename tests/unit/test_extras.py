"""Imports of packages that may be missing or large."""

from __future__ import annotations

import gc
import importlib
import sys
from pathlib import Path

import pytest

from t2n_core.extras import MissingPackageError, loading_modules, paused_gc, require


def test_garbage_is_collected_again_after_imports() -> None:
    with paused_gc():
        assert not gc.isenabled()
        with paused_gc():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_imported_counts_as_old_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("made_for_gc.py").write_text("kept = {'a': []}")
    monkeypatch.syspath_prepend(tmp_path)
    gc.unfreeze()
    with loading_modules():
        made = importlib.import_module("made_for_gc")
    assert any(item is made.kept for item in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0


def test_frozen_objects_stay_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("made_for_freeze.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    gc.freeze()
    try:
        with loading_modules():
            importlib.import_module("made_for_freeze")
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_missing_package_is_named_with_its_command_and_none_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    require("t2n export", "json")
    with pytest.raises(MissingPackageError, match="export-llm needs transformers: pip install"):
        require("t2n export-llm", "json", "transformers")
