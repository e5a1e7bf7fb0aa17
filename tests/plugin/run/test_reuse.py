"""The key of `--t2n-reuse`: made once per check, of all that decides about a result."""

from __future__ import annotations

from tests.plugin.conftest import FAKE_CONFTEST

COUNTING = """

import t2n_core.check.parity

digest = t2n_core.check.parity.archive_digest


def counted(path):
    with Path(__file__).with_name("digests.txt").open("a") as digests:
        digests.write(f"{path}\\n")
    return digest(path)


t2n_core.check.parity.archive_digest = counted
"""


def test_an_archive_is_read_once_for_the_key_and_once_for_the_record(suite):
    suite.pytester.makeconftest(FAKE_CONFTEST + COUNTING)
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        def test_model():
            return "pass", (1,)
        """
    )
    digests = suite.path / "digests.txt"
    counts = []
    for _ in range(2):
        suite.run("--t2n-reuse", "--t2n-cache-dir=cache", engines="0.23", alone=True).assert_outcomes(passed=1)
        counts.append(len(digests.read_text().splitlines()))
        digests.unlink()
    assert counts == [2, 1], "a result that is reused has its digest in the store"
