"""What is secret in a command line does not reach records."""

from __future__ import annotations

import pytest

from pytest_t2n.config.secrets import hidden_digest, without_secrets
from tests.plugin.suites import marked


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (["--api-token=abc", "-x"], ["--api-token=***", "-x"]),
        (["--api-token", "abc", "tests"], ["--api-token", "***", "tests"]),
        (["--password", "-x"], ["--password", "-x"]),
        (["--pw", "-secret", "tests"], ["--pw", "***", "tests"]),
        (["--pw", "--secret", "tests"], ["--pw", "***", "tests"]),
        (["-Zsecret", "tests", "-Z"], ["-Z***", "***", "-Z"]),
        (["--pair", "a", "abc"], ["--pair", "***", "***"]),
        (["--header", "Authorization: Bearer abc"], ["--header", "***"]),
        (["--cookie=a", "--bearer=b", "--jwt=c", "--ssh-key=d"], ["--cookie=***", "--bearer=***", "--jwt=***",
                                                                   "--ssh-key=***"]),
        (["--db=Server=x;Password=abc"], ["--db=***"]),
        (['{"token": "abc"}'], ["***"]),
        (["-o", "db_password=abc"], ["-o", "db_password=***"]),
        (["-odb_password=abc"], ["-odb_password=***"]),
        (["--override-ini=api_token=abc", "--override-ini", "key=abc"], ["--override-ini=api_token=***",
                                                                        "--override-ini", "key=***"]),
        (["-o", "t2n_tract=0.23"],) * 2,
        (["--AWS_SECRET_ACCESS_KEY=a=b"], ["--AWS_SECRET_ACCESS_KEY=***"]),
        (["--index=https://me:abc@host/simple"], ["--index=***"]),
        (["https://token@host", "https://host/?token=abc"], ["***", "***"]),
        (["--t2n-tract=https://user:p@ss@host/x?token=a"], ["--t2n-tract=https://***@host/x?***"]),
        (["--basic-auth", "me:abc"], ["--basic-auth", "***"]),
        (["--t2n-tract=0.23", "tests/test_tokens.py::test_key[a=b]", "-k", "author or tokenizer"],) * 2,
        (["--monkey=1", "--keyword=2", "--maxfail=3"], ["--monkey=***", "--keyword=***", "--maxfail=3"]),
        (["-n", "2", "-n4", "-vv", "-rP", "--dist=load", "tests", "-m", "not slow"],) * 2,
    ],
)  # fmt: skip
def test_values_that_only_other_plugins_explain_are_hidden(typed, kept):
    assert without_secrets(typed) == kept


def test_the_digest_of_hidden_values_tells_that_they_changed():
    assert hidden_digest(["--t2n-tract=0.23", "-x", "tests"]) == ""
    digests = [hidden_digest(["--size=1", *more]) for more in ([], ["-x"], ["-n", "2"])]
    assert len(set(digests)) == 1
    assert hidden_digest(["--size=2"]) not in (*digests, "")


def test_records_and_page_show_no_secret(suite):
    suite.pytester.makeconftest(
        suite.path.joinpath("conftest.py").read_text()
        + "\n\ndef pytest_addoption(parser):\n    parser.addoption('--upload-token')\n"
    )
    suite.pytester.makepyfile(marked(model='"pass"'))
    suite.run("--t2n-report=site", "--upload-token", "hunter2", engines="0.23").assert_outcomes(passed=1)
    for path in (suite.path / "site").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
