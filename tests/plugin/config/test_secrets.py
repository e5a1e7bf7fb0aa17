"""What is secret in a command line does not reach records."""

from __future__ import annotations

import pytest

from pytest_t2n.config.secrets import without_secrets
from tests.plugin.suites import marked


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (["--api-token=abc", "-x"], ["--api-token=***", "-x"]),
        (["--api-token", "abc", "tests"], ["--api-token", "***", "tests"]),
        (["--password", "-x"], ["--password", "-x"]),
        (["-o", "db_password=abc"], ["-o", "db_password=***"]),
        (["--AWS_SECRET_ACCESS_KEY=a=b"], ["--AWS_SECRET_ACCESS_KEY=***"]),
        (["--index=https://me:abc@host/simple"], ["--index=https://***@host/simple"]),
        (["https://token@host"], ["https://***@host"]),
        (["--basic-auth", "me:abc"], ["--basic-auth", "***"]),
        (["--t2n-tract=0.23", "tests/test_tokens.py::test_key[a=b]", "-k", "author or tokenizer"],) * 2,
        (["--monkey=1", "--keyword=2", "--maxfail=3"],) * 2,
    ],
)
def test_values_of_secret_options_are_hidden(typed, kept):
    assert without_secrets(typed) == kept


def test_records_and_page_show_no_secret(suite):
    suite.pytester.makeconftest(
        suite.path.joinpath("conftest.py").read_text()
        + "\n\ndef pytest_addoption(parser):\n    parser.addoption('--upload-token')\n"
    )
    suite.pytester.makepyfile(marked(model='"pass"'))
    suite.run("--t2n-report=site", "--upload-token", "hunter2", engines="0.23").assert_outcomes(passed=1)
    for path in (suite.path / "site").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
