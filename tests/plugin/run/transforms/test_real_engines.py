"""Transforms of a session in real engines, with models of PyTorch."""

from __future__ import annotations

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ENGINES_IN_CACHE = ("0.22.4", RECENT)
CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""
MODELS = """
    import pytest
    import torch
    from torch import nn

    @pytest.mark.nnef_export(transforms=["f32_to_f16"])
    def test_linear():
        return nn.Linear(5, 3).eval(), torch.randn(4, 5)

    @pytest.mark.nnef_export
    def test_gelu():
        return nn.GELU(), torch.randn(3, 4)
"""


def test_a_session_finds_what_a_release_cannot_write(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_it=MODELS)
    options = (
        f"--t2n-tract=0.22.4,{RECENT}",
        "--t2n-transforms=round_trip",
        "--t2n-report=site",
        CACHE,
        "--t2n-offline",
    )
    result = suite.start(*options, "-p", "no:xdist", "-p", "no:hypothesispytest", modules=FOR_EXPORTS)
    result.assert_outcomes(passed=3, failed=1)
    assert suite.statuses[f"test_gelu[tract-{RECENT}]"] == "error"
    result.stdout.fnmatch_lines(
        ["*after the transform `round_trip`: No serializer found for node*GeluExact*", "*in: Translating model to AST*"]
    )
    linear = suite.cells["test_linear[tract-0.22.4]"]["facts"]["checked_transforms"]
    assert linear["round_trip"].startswith("pass at ")
    assert linear["f32_to_f16"].startswith("pass, peak 0.000")
