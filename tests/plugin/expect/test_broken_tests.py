"""No entry excuses a broken test."""

from __future__ import annotations

import pytest

BROKEN = """
    import pytest

    @pytest.mark.nnef_export
    def test_name():
        return no_such_name, (1,)

    def test_unchecked(nnef_export):
        nnef_export("pass", (1,))
"""
EXCUSE = """
[[expect]]
case = "*"
engine = "tract"
stage = "{stage}"
status = "error"
reason = "r"
"""


def test_an_entry_excuses_no_broken_test_and_none_without_a_check(suite):
    suite.pytester.makepyfile(BROKEN)
    (suite.path / "known.toml").write_text(EXCUSE.format(stage="compare"))
    suite.run("--t2n-expect=known.toml", "-k", "unchecked", engines="0.23").assert_outcomes(failed=1)
    (suite.path / "known.toml").write_text(EXCUSE.format(stage="setup"))
    result = suite.run("--t2n-expect=known.toml", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *known.toml:2: a failure at stage 'setup' is that of a broken test, *"])
