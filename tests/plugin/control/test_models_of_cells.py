"""Each cell has a name and a model of its own, and no test that returns a model goes unseen."""

from __future__ import annotations

import textwrap

import pytest

from tests.plugin.conftest import FAKE_CONFTEST
from tests.releases import RECENT

NAMES = {
    "docstring": "item.obj.__doc__",
    "no parameters": "own.fget(item).split('[')[0]",
}
OF_ONE_NAME = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass", "mismatch"])
    def test_model(model):
        "A net"
        return model, (1,)
"""
IDS = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", [pytest.param("pass", id="\\udc80"), pytest.param("mismatch", id="\\\\udc80")])
    def test_model(model):
        return model, (1,)
"""


@pytest.mark.parametrize("where", ["n0", "n2"])
def test_two_cells_with_one_name_are_refused(suite, where):
    suite.pytester.makepyfile(test_it=IDS)
    suite.pytester.makeini("[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n")
    result = suite.run("--t2n-report=site", engines="0.23", mode=where, alone=True)
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "two cells have the node id" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("change", list(NAMES))
def test_cells_that_a_hook_gives_one_name_are_refused(suite, change):
    suite.pytester.makepyfile(test_it=OF_ONE_NAME)
    hook = (
        f"import pytest\nown = pytest.Function.nodeid\npytest.Function.nodeid = property(lambda item: {NAMES[change]})"
    )
    (suite.path / "conftest.py").write_text(f"{FAKE_CONFTEST}\n{hook}\n")
    result = suite.run("--t2n-report=site", engines="0.23", alone=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "two cells have the node id" in result.stdout.str() + result.stderr.str()


BY_REQUEST = f"""
    import pytest

    def of(text):
        return "mismatch" if "{RECENT}" in text else "pass"

    @pytest.mark.nnef_export
    def test_value(request):
        return of(request.getfixturevalue("t2n_engine").version), (1,)

    @pytest.mark.nnef_export
    def test_parameters(request):
        return of(request.node.callspec.params["t2n_engine"].version), (1,)

    @pytest.fixture
    def by_name(request):
        return of(request.node.name)

    @pytest.mark.nnef_export
    def test_name(by_name):
        return by_name, (1,)

    @pytest.fixture
    def later(request):
        return lambda: of(request.node.name)

    @pytest.mark.nnef_export
    def test_later(later):
        return later(), (1,)
"""
BY_PARAMETER = """
    import pytest

    @pytest.fixture(params=["pass", "weak"])
    def model(request):
        request.addfinalizer(lambda: None)
        return request.param

    @pytest.mark.nnef_export
    def test_model(model, tmp_path, record_property):
        return model, (1,)
"""


def test_a_model_that_the_request_decides_is_exported_for_each_engine(suite):
    suite.pytester.makepyfile(BY_REQUEST)
    suite.run("--t2n-report=site", engines="0.21,0.23").assert_outcomes(passed=4, failed=4)
    assert {name for name, status in suite.statuses.items() if status == "mismatch"} == {
        f"test_{name}[tract-{RECENT}]" for name in ("value", "parameters", "name", "later")
    }


def test_a_model_that_a_parameter_decides_is_exported_once(suite):
    suite.pytester.makepyfile(BY_PARAMETER)
    suite.run(engines="0.21,0.23").assert_outcomes(passed=4)
    assert len([line for line in suite.log if "capture" in line]) == 2


ASYNC = """
    import asyncio
    import pytest

    class Run(pytest.Function):
        def runtest(self):
            function, returned = self.obj, []
            self.obj = lambda **given: asyncio.run(function(**given)) and None
            super().runtest()

    def collected(item):
        return Run.from_parent(item.parent, name=item.name, callspec=getattr(item, "callspec", None), callobj=item.obj)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(items):
        items[:] = [collected(item) for item in items]
"""
"""The mechanism of pytest-asyncio 1 in its mode `auto`: what the coroutine returns is lost."""


def test_an_unmarked_async_test_that_returns_a_model_fails(suite):
    suite.pytester.makepyfile(
        test_it="""
        import torch

        async def test_unmarked():
            return torch.nn.Linear(2, 2), (torch.ones(1, 2),)

        async def test_other():
            return 1
        """
    )
    (suite.path / "conftest.py").write_text(FAKE_CONFTEST + textwrap.dedent(ASYNC))
    result = suite.run(engines="0.23", alone=True)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test returns a model and its inputs, and nothing checks them*"])
