"""A test is judged by the marker that it carries when it runs: one that came too late for engines fails."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import FAKE_CONFTEST

TESTS = """
    def test_model():
        return "mismatch", (1,)
"""
LATE = {
    "of the items": """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.nnef_export(target="tract"))
""",
    "first of the items": """
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker("nnef_export")
""",
    "of an item": """
def pytest_itemcollected(item):
    item.add_marker("nnef_export")
""",
    "of the definition": """
def pytest_generate_tests(metafunc):
    metafunc.definition.add_marker("nnef_export")
""",
    "of a request": """
@pytest.fixture(autouse=True)
def marked(request):
    request.applymarker("nnef_export")
""",
}
EARLY = """
def pytest_collectstart(collector):
    if isinstance(collector, pytest.Module):
        collector.add_marker(pytest.mark.nnef_export)
"""


@pytest.mark.parametrize("way", list(LATE))
def test_a_marker_that_comes_after_engines_fails(suite, way):
    suite.pytester.makeconftest(f"import pytest\n{FAKE_CONFTEST}{LATE[way]}")
    suite.pytester.makepyfile(TESTS)
    result = suite.run(engines="0.23")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) == 0
    result.stdout.fnmatch_lines(["*t2n: the marker *"])


def test_a_marker_of_a_parameter_set_fails_unless_the_function_has_one(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("what", [pytest.param("mismatch", marks=pytest.mark.nnef_export), "pass"])
        def test_model(what):
            return what, (1,)
        """
    )
    result = suite.run("-W", "ignore::pytest.PytestReturnNotNoneWarning", engines="0.23")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*t2n: the marker was added after marked tests were parametrized with engines*"])


def test_modules_are_marked_when_their_collection_starts(suite):
    suite.pytester.makeconftest(f"import pytest\n{FAKE_CONFTEST}{EARLY}")
    suite.pytester.makepyfile(TESTS + "\n\n    def test_other():\n        return 'pass', (1,)\n")
    suite.run(engines="0.23").assert_outcomes(failed=1, passed=1)


def test_late_markers_are_skipped_where_no_engine_is_selected(suite):
    suite.pytester.makeconftest(f"import pytest\n{FAKE_CONFTEST}{LATE['of the items']}")
    suite.pytester.makepyfile(TESTS)
    suite.run(engines="").assert_outcomes(skipped=1)


def test_methods_of_unittest_fail(suite):
    suite.pytester.makepyfile(
        """
        import unittest

        import pytest

        class TestModels(unittest.TestCase):
            @pytest.mark.nnef_export
            def test_model(self):
                pass
        """
    )
    suite.run(engines="0.23").assert_outcomes(errors=1)
    suite.run(engines="").assert_outcomes(skipped=1)
