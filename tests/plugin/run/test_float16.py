"""Stored and computed float16 of marked tests, on a real engine."""

from __future__ import annotations

from t2n_core.engine.provision.store import default_cache_dir
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

TESTS = """
    import pytest
    import torch
    from torch import nn

    @pytest.mark.nnef_export(target="tract", precision="auto")
    def test_computed():
        return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)), torch.randn(3, 16)

    @pytest.mark.nnef_export(target="tract", precision="auto", tolerance="close")
    def test_close():
        return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)), torch.randn(3, 16)

    @pytest.mark.nnef_export(target="tract", weights={"0": "float32", "*": "float16"})
    def test_stored():
        return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)), torch.randn(3, 16)
"""


def test_computed_float16_are_judged_as_such_unless_another_level_is_asked_for(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TESTS)
    result = suite.run("--t2n-report=site", CACHE, engines="0.23.9", alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=2, failed=1)
    assert suite.statuses["test_close[tract-0.23.9]"] == "mismatch"
