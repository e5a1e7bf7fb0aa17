"""Rewriters that test modules and conftests register are seen by their own tests only."""

from __future__ import annotations

import pytest

TEST = """
    from t2n_core.rewriter import FUNCTION_REWRITER

    @FUNCTION_REWRITER.register_rewriter(func_name="{own}")
    def own(x):
        return x

    def registered():
        return {{r.subject for r in FUNCTION_REWRITER}}

    def test_first():
        assert registered() == {{"{own}", {others}}}
        FUNCTION_REWRITER.register_rewriter(func_name="during.a_test")(lambda x: x)
        FUNCTION_REWRITER.register_rewriter(func_name="during.a_test_too")(len)
        assert "during.a_test" in registered()

    def test_second():
        assert registered() == {{"{own}", {others}}}
"""
CONFTEST = """
    from t2n_core.rewriter import FUNCTION_REWRITER
    {more}
    FUNCTION_REWRITER.register_rewriter(func_name="{name}")(lambda x: x)
"""


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_each_test_sees_its_own(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makepyfile(
        **{
            "helper": CONFTEST.format(name="of.a_package", more=""),
            "conftest": CONFTEST.format(name="of.the_root", more="import helper"),
            "inner/conftest": CONFTEST.format(name="of.inner", more=""),
            "test_a": TEST.format(own="of.a", others='"of.the_root", "of.a_package"'),
            "test_b": TEST.format(own="of.b", others='"of.the_root", "of.a_package"'),
            "inner/test_c": TEST.format(own="of.c", others='"of.the_root", "of.a_package", "of.inner"'),
        }
    )
    options = ["-q", "--import-mode=importlib", *workers]
    pytester.runpytest_subprocess(*options, "-o", "pythonpath=.").assert_outcomes(passed=6)
    chosen = pytester.runpytest_subprocess(*options, "-o", "pythonpath=.", "-k", "test_b or test_c")
    chosen.assert_outcomes(passed=4, deselected=0 if workers else 2)
