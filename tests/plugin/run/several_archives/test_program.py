"""The marker `nnef_program` on real engines: records of a program of several archives, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ROOT = Path(__file__).parents[4]
"""The folder of `conformance`, whose modules the suites below import."""
CACHE = f"--t2n-cache-dir={default_cache_dir()}"
PROGRAM = """
import pytest
import torch
from dataclasses import replace
from conformance.cases.several_archives.recognisers import ctc

"""


@pytest.fixture(autouse=True)
def engines(resolved_engine):
    """Fetch the engines, since the sessions below are offline."""
    for version in ("0.21.19", RECENT):
        resolved_engine(version)


def ran(suite, test: str, engines: str = f"0.21.19,{RECENT}"):
    suite.pytester.makeconftest(f"import sys\n\nsys.path.insert(0, {str(ROOT)!r})\n")
    (suite.path / "test_it.py").write_text(PROGRAM + test)
    return suite.run("--t2n-offline", CACHE, "--t2n-report=site", engines=engines, alone=True, modules=FOR_EXPORTS)


def test_a_program_is_a_cell_for_each_engine(suite):
    result = ran(suite, "@pytest.mark.nnef_program\ndef test_ctc():\n    return ctc()\n")
    result.assert_outcomes(passed=2)
    assert {name: cell["status"] for name, cell in suite.cells.items()} == {
        "test_ctc[tract-0.21.19]": "pass",
        f"test_ctc[tract-{RECENT}]": "pass",
    }
    assert "aten::gru.input" in str(suite.cells[f"test_ctc[tract-{RECENT}]"]["ops"])


def test_statements_that_compute_something_else_fail(suite):
    test = """
@pytest.mark.nnef_program(tolerance="close")
def test_ctc():
    program = ctc()
    return replace(program, reference=lambda features: program.reference(features) + 1)
"""
    result = ran(suite, test, engines=RECENT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the program differs from its reference on example 0*"])
    assert suite.cells[f"test_ctc[tract-{RECENT}]"]["stage"] == "input"


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            "@pytest.mark.nnef_program\ndef test_it():\n    return 3\n",
            "this test returned a int: a test marked nnef_program",
        ),
        (
            "@pytest.mark.nnef_program(dynamic_axes={})\ndef test_it():\n    return ctc()\n",
            "`dynamic_axes` is not an argument of nnef_program: options of an export belong to its Part",
        ),
        (
            "@pytest.mark.nnef_program(target='khronos')\ndef test_it():\n    return ctc()\n",
            "only tract runs programs of several archives",
        ),
    ],
)
def test_wrong_uses_are_errors(suite, test, message):
    result = ran(suite, test, engines=RECENT)
    assert result.ret != 0
    assert message in result.stdout.str() + result.stderr.str()
