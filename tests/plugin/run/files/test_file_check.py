"""The marker `nnef_file` and the fixture `nnef_check`: files that exist, in real engines."""

from __future__ import annotations

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.onnx_nets import linear, lstm, saved
from tests.releases import LINES, RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
ENGINES = f"{LINES[-3]},{RECENT}"


@pytest.fixture(autouse=True)
def engines(resolved_engine):
    """Fetch the engines, since the sessions below are offline."""
    for version in ENGINES.split(","):
        resolved_engine(version)


def ran(suite, test: str, engines: str = ENGINES):
    suite.pytester.makeconftest("")
    saved(linear(), suite.path / "linear.onnx")
    saved(lstm("reverse"), suite.path / "reverse.onnx")
    (suite.path / "test_it.py").write_text(f"import numpy as np\nimport pytest\n\n{test}")
    return suite.run("--t2n-offline", CACHE, "--t2n-report=site", engines=engines, alone=True, modules=FOR_EXPORTS)


def test_a_file_is_a_cell_for_each_engine(suite):
    ran(suite, "@pytest.mark.nnef_file('linear.onnx')\ndef test_net():\n    pass\n").assert_outcomes(passed=2)
    cells = suite.cells
    assert {name: cell["status"] for name, cell in cells.items()} == {
        f"test_net[tract-{version}]": "pass" for version in ENGINES.split(",")
    }
    assert {"B": 1} in cells[f"test_net[tract-{RECENT}]"]["sizes"]


def test_a_file_that_the_engine_computes_wrongly_fails(suite):
    result = ran(suite, "@pytest.mark.nnef_file('reverse.onnx')\ndef test_net():\n    pass\n", engines=RECENT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 of 1 outputs differ from onnxruntime beyond `approximate`: y*"])
    assert suite.cells[f"test_net[tract-{RECENT}]"]["status"] == "mismatch"


@pytest.mark.parametrize(
    ("returned", "outcome"),
    [
        ("{'x': np.ones((4, 5), 'f4')}", {"passed": 1}),
        ("[{'x': np.full((n, 5), n, 'f4')} for n in (2, 3)]", {"passed": 1}),
        ("{'x': np.ones((4, 5), 'f4')}, {'y': np.ones((4, 3), 'f4')}", {"failed": 1}),
        ("{'z': np.ones((4, 5), 'f4')}", {"failed": 1}),
    ],
)
def test_inputs_that_a_test_returns(suite, returned, outcome):
    test = f"@pytest.mark.nnef_file('linear.onnx')\ndef test_net():\n    return {returned}\n"
    ran(suite, test, engines=RECENT).assert_outcomes(**outcome)


MODULE = """
import onnx
import torch
from onnx import numpy_helper
from pathlib import Path

PATH = Path(__file__).with_name("linear.onnx")
MODEL = onnx.load(PATH)
WEIGHT, BIAS = (torch.tensor(numpy_helper.to_array(initializer)) for initializer in MODEL.graph.initializer)


class Net(torch.nn.Module):
    def forward(self, x):
        return {"y": x @ WEIGHT + BIAS}


class Other(Net):
    def forward(self, x):
        return x.mul_(2) @ WEIGHT


"""


@pytest.mark.parametrize(
    ("marker", "returned", "message"),
    [
        ("nnef_file", "MODEL, Net(), torch.randn(4, 5)", ""),
        ("nnef_file()", "PATH, Net(), [(torch.randn(n, 5),) for n in (2, 3)]", ""),
        ("nnef_file('linear.onnx')", "Net(), {'x': torch.randn(4, 5)}", ""),
        ("nnef_file", "MODEL, Other(), torch.randn(4, 5)", "who is wrong: the exporter"),
        ("nnef_file", "MODEL, Net(), {'z': torch.randn(4, 5)}", "arrays for z, and the file has x"),
        ("nnef_file", "MODEL, lambda x: (x, x), torch.randn(4, 5)", "module has 2 outputs"),
        ("nnef_file", "3, Net(), torch.randn(4, 5)", "where an ONNX model or its path is expected"),
        ("nnef_file('linear.onnx')", "MODEL, Net(), torch.randn(4, 5)", "if the marker names none"),
    ],
)
def test_a_module_beside_an_onnx_model(suite, marker, returned, message):
    test = f"{MODULE}@pytest.mark.{marker}\ndef test_net():\n    return {returned}\n"
    result = ran(suite, test, engines=RECENT if message else ENGINES)
    result.assert_outcomes(**({"failed": 1} if message else {"passed": 2}))
    assert message in result.stdout.str()


def test_the_fixture_checks_any_number_of_files(suite):
    test = """
@pytest.mark.parametrize("name", ["linear", "reverse"])
def test_nets(nnef_check, name):
    outcome = nnef_check(f"{name}.onnx", sizes={"B": 4} if name == "linear" else None)
    assert outcome.passed
"""
    ran(suite, test, engines=RECENT).assert_outcomes(passed=1, failed=1)
    assert suite.cells[f"test_nets[linear-tract-{RECENT}]"]["sizes"] == [{"B": 4}]
    assert suite.cells[f"test_nets[reverse-tract-{RECENT}]"]["status"] == "mismatch"


def test_a_failed_check_cannot_be_caught(suite):
    test = """
def test_net(nnef_check):
    with pytest.raises(pytest.fail.Exception):
        nnef_check("reverse.onnx")
"""
    result = ran(suite, test, engines=RECENT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a check of this test failed, and the test does not*"])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("nnef_file(3)", "nnef_file takes the path of a file, not 3"),
        ("nnef_file", "this test returned nothing: a test marked nnef_file returns"),
        ("nnef_file('linear.onnx', dynamic_axes={})", "`dynamic_axes` is not an argument of nnef_file"),
        ("nnef_file('linear.onnx', sizes=3)", "sizes=3 is not a mapping"),
        ("nnef_file('linear.onnx', sizes={'N': 3})", "has no dynamic dimension N"),
        ("nnef_file('missing.onnx')", "there is no file"),
    ],
)
def test_wrong_uses_are_errors(suite, marker, message):
    result = ran(suite, f"@pytest.mark.{marker}\ndef test_net():\n    pass\n", engines=RECENT)
    assert result.ret != 0
    assert message in result.stdout.str() + result.stderr.str()


def test_a_test_returns_no_model(suite):
    result = ran(suite, "@pytest.mark.nnef_file('linear.onnx')\ndef test_net():\n    return 3\n", engines=RECENT)
    result.stdout.fnmatch_lines(["*this test returned a int: a test marked nnef_file returns nothing*"])
