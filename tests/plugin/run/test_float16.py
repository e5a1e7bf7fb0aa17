"""Stored and computed float16 of marked tests, on a real engine."""

from __future__ import annotations

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
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
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=2, failed=1)
    assert suite.statuses[f"test_close[tract-{RECENT}]"] == "mismatch"


METRICS = """
    import numpy as np
    import pytest
    import torch
    from torch import nn

    def loss(expected, actual):
        return float(np.abs(expected[0] - actual[0]).max())

    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)), torch.randn(3, 16)

    @pytest.mark.nnef_export(target="tract", weights="int8", metric={"loss": loss}, bound={"loss": 1e-5})
    def test_own():
        return model()

    @pytest.mark.nnef_export(
        target="tract", weights="int8", metric={"loss": loss}, bound={"loss": 1e-5}, reference="stored"
    )
    def test_stored():
        return model()
"""


def test_a_metric_of_stored_weights_stands_in_the_record_with_its_reference(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(METRICS)
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*metric loss: *, required <= 1e-05, against the model's own weights*"])
    own_cell, stored = (suite.cells[f"test_{name}[tract-{RECENT}]"] for name in ("own", "stored"))
    assert (own_cell["status"], stored["status"]) == ("mismatch", "pass")
    assert own_cell["facts"]["stored_weights"] == stored["facts"]["stored_weights"] == "2 as int8"
    assert own_cell["metrics"][0]["reference"] == "the model's own weights"
    assert stored["metrics"][0]["reference"] == "the weights as stored"
