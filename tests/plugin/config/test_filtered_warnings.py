"""Warnings of an export in a project whose configuration turns warnings into errors, on a real engine."""

from __future__ import annotations

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

TESTS = """
    import pytest
    import torch
    from torch import nn

    @pytest.mark.nnef_export(target="tract", weights="int8")
    def test_model():
        return nn.utils.parametrizations.weight_norm(nn.Linear(16, 16)), torch.randn(3, 16)
"""


@pytest.mark.parametrize("filters", ["", "ignore::t2n_core.OptionWarning", "ignore::t2n_core.T2NWarning"])
def test_a_filter_lets_warnings_through(filters, suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TESTS)
    suite.pytester.makeini(f"[pytest]\nfilterwarnings =\n    error\n    {filters}")
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    if filters:
        result.assert_outcomes(passed=1)
        return
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*your filterwarnings turned OptionWarning into an error: weights had *`constant_0` (`_weight_norm` in *",
            "*hint: `ignore::t2n_core.OptionWarning` lets it through*",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_warning_of_the_fixture_is_raised_without_our_frames(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(
        """
        import pytest
        import torch
        from torch import nn

        @pytest.mark.nnef_export(target="tract", reify_sdpa_operator=True)
        def test_model(nnef_export):
            nnef_export(nn.Linear(4, 4), torch.randn(3, 4)).assert_parity()
        """
    )
    suite.pytester.makeini("[pytest]\nfilterwarnings = error")
    result = suite.run(CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*OptionWarning: reify_sdpa_operator had no effect*", "*a filter of yours turned this*"]
    )
    result.stdout.no_fnmatch_line("*notes.py:*")
