"""Imports of packages that may be missing or large."""

from __future__ import annotations

import gc

from t2n_core.extras import paused_gc


def test_garbage_is_collected_again_after_imports() -> None:
    with paused_gc():
        assert not gc.isenabled()
        with paused_gc():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
