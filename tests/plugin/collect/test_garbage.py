"""When Python collects no garbage."""

from __future__ import annotations


def test_garbage_is_collected_except_while_modules_are_imported_for_engines_and_while_the_session_ends(suite):
    suite.pytester.makeconftest(
        "import gc\n"
        "def pytest_collection(): assert gc.isenabled()\n"
        "def pytest_collection_finish(): assert gc.isenabled()\n"
        "def pytest_terminal_summary(): print('at the end', gc.isenabled())\n"
        "def pytest_unconfigure(): print('after it', gc.isenabled())\n"
    )
    suite.pytester.makepyfile(
        test_broken="import gc\nassert gc.isenabled()",
        test_it="import gc\nimported = gc.isenabled()\ndef test_paused(): assert gc.isenabled() and not imported",
    )
    arguments = ("-s", "--continue-on-collection-errors")
    paused = suite.run(*arguments, engines="0.23")
    paused.assert_outcomes(passed=1, errors=1)
    paused.stdout.fnmatch_lines(["*at the end False", "*after it True"])
    plain = suite.run(*arguments, engines="")
    plain.assert_outcomes(failed=1)
    plain.stdout.fnmatch_lines(["*at the end True"])
