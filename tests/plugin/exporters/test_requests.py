"""What a session asks for beside the check: of other exporters' files it does what it does of any file."""

from __future__ import annotations

import pytest

from tests.plugin.exporters.toys import CACHE, FAULTS, TEST, TOY
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ENGINES_IN_CACHE = ("0.21.19", RECENT)


def run(suite, *options: str):
    return suite.run("--t2n-report=site", CACHE, *options, engines=RECENT, alone=True, modules=FOR_EXPORTS)


@pytest.mark.parametrize("option", ["--t2n-transforms=f32_to_f16", "--t2n-profile=profiles", "--t2n-bisect"])
def test_a_right_file_passes_whatever_is_asked_of_own_archives(suite, option):
    suite.pytester.makeconftest(TOY)
    suite.pytester.makepyfile(TEST)
    run(suite, "--t2n-exporter=toy", option).assert_outcomes(passed=1)
    (cell,) = suite.cells.values()
    assert (cell["status"], cell["facts"]["profiles"]["strict"]) == ("pass", "pass")
    assert not (suite.path / "profiles").exists()


def test_a_wrong_file_stays_a_mismatch_and_is_explained(suite):
    suite.pytester.makeconftest(FAULTS)
    suite.pytester.makepyfile(TEST)
    options = ("--t2n-bisect", "--t2n-reduce=smaller", "--t2n-bundle-failures=failures", "--t2n-bisect-releases")
    run(suite, "--t2n-exporter=toy-sizes", "--t2n-offline", *options).assert_outcomes(failed=1)
    (cell,) = suite.cells.values()
    assert (cell["status"], cell["stage"]) == ("mismatch", "compare")
    assert list((suite.path / "failures").iterdir())
    for words in ("releases of tract tried", "not reduced: the oracle, definitions", "reproduce: t2n matrix run"):
        assert words in cell["error"]["details"]


def test_a_refused_model_is_not_captured(suite):
    suite.pytester.makeconftest(
        TOY.replace("def export(self, request):", "def export(self, request):\n        raise OSError('no')\n")
        + """
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer


def capture(tracer):
    open("captured", "w").close()


TorchModuleTracer.trace = capture
"""
    )
    suite.pytester.makepyfile(TEST)
    run(suite, "--t2n-exporter=toy").assert_outcomes(failed=1)
    (cell,) = suite.cells.values()
    assert (cell["status"], cell.get("ops", [])) == ("unsupported", [])
    assert not (suite.path / "captured").exists()
