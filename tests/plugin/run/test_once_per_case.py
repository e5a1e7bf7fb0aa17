"""A test that returns its model is called once per case.

Its output is in its first cell, and its weights are the same wherever it runs.
"""

from __future__ import annotations

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ENGINES_IN_CACHE = ("0.21.19", RECENT)
CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""

MODELS = """
    import os
    import pytest
    import torch

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("size", [3, 4, 5, 6])
    def test_model(size):
        print(f"called for {size}")
        net, x = torch.nn.Linear(size, 2), torch.randn(2, size)
        total = net.weight.sum().item() + x.sum().item()
        with open("drawn.txt", "a") as file:
            file.write(f"{size} {total!r}\\n")
        assert size != 5, "of this size there is none"
        return net, (x,)
"""


def drawn(suite):
    """What was drawn in the last run, by size."""
    lines = (suite.path / "drawn.txt").read_text().splitlines()
    (suite.path / "drawn.txt").unlink()
    return sorted(lines)


def test_weights_are_the_same_in_every_session_and_worker(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_models=MODELS)
    options = (f"--t2n-cache-dir={CACHE}", "--t2n-offline", "-rP")
    result = suite.run(*options, engines=f"0.21.19,{RECENT}", alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=6, failed=2)
    first = drawn(suite)
    assert len([line for line in first if not line.startswith("5")]) == 3, "one call for both engines"
    assert result.stdout.str().count("called for 3") == 1
    suite.run(*options, engines=f"0.21.19,{RECENT}", mode="n2", alone=True, modules=FOR_EXPORTS)
    assert set(drawn(suite)) == set(first)
    suite.run(*options, "-k", "model[4", engines=RECENT, alone=True, modules=FOR_EXPORTS)
    assert drawn(suite) == [line for line in first if line.startswith("4")]
