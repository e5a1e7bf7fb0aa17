"""A resumed session keeps results only where everything is as it was that its tests read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TESTS = """
    import json
    import os
    import sys
    from pathlib import Path

    import pytest

    from t2n_core.scratch import ScratchFolder

    sys.path[:0] = [f"{Path.cwd()}-outside", ".hidden", "linked", "environment"]
    import beside

    SCRATCH = ScratchFolder()

    def model():
        Path("written.txt").write_text("again")
        Path("written.txt").read_text()
        (SCRATCH.path / "part").write_text("an archive")
        (SCRATCH.path / "part").rename(SCRATCH.path / "archive").read_text()
        os.environ.copy()
        scale = os.environ.get("SCALE"), os.getenv("OTHER")
        try:
            Path("maybe.json").read_text()
        except OSError:
            pass
        return json.loads(Path("data/config.json").read_text())["model"]

    @pytest.mark.nnef_export
    def test_model():
        return model(), (1,)

    def test_that_ends_the_session(request):
        SCRATCH.remove()
        request.session.shouldstop = "interrupted"
"""
WHERE = {"outside": "", "hidden": ".hidden", "linked": "linked", "environment": "environment"}


def folder_of(suite, where: str) -> Path:
    return suite.path / WHERE[where] if WHERE[where] else suite.path.with_name(f"{suite.path.name}-outside")


def prepared(suite, where: str) -> None:
    """Write the tests, with the module that they import in one of the folders."""
    folder = folder_of(suite, where)
    if where == "linked":
        target = suite.path.with_name(f"{suite.path.name}-target")
        target.mkdir()
        folder.symlink_to(target)
    folder.mkdir(exist_ok=True)
    if where == "environment":
        (folder / "pyvenv.cfg").touch()
    (folder / "beside.py").write_text("SCALE = 1\n")
    (suite.path / "data").mkdir()
    (suite.path / "data" / "config.json").write_text('{"model": "pass"}')
    suite.pytester.makepyfile(test_it=TESTS)


def interrupted(suite, *arguments: str) -> None:
    suite.run("--t2n-report=site", *arguments, engines="0.23", alone=True).assert_outcomes(passed=2)


def resumed(suite, *arguments: str) -> pytest.RunResult:
    return suite.run("--t2n-report=site", "--t2n-resume", *arguments, engines="0.23", alone=True)


def is_refused(result: pytest.RunResult, name: str) -> bool:
    return result.ret == pytest.ExitCode.USAGE_ERROR and f"state of what its tests read: {name};" in result.stderr.str()


def test_nothing_changed(suite, monkeypatch):
    prepared(suite, "outside")
    interrupted(suite)
    (reads,) = (cell["reads"] for cell in suite.cells.values())
    assert {"test_it.py", "conftest.py", "data/config.json", "maybe.json", "$SCALE", "$OTHER"} <= reads.keys()
    assert [name for name in reads if "__pycache__" in name or name in ("$UNREAD", "written.txt")] == []
    monkeypatch.setenv("UNREAD", "1")
    resumed(suite).stdout.fnmatch_lines(["*--t2n-resume: 1 cells kept*"])


@pytest.mark.parametrize("where", list(WHERE))
def test_a_module_that_changed(suite, where):
    prepared(suite, where)
    interrupted(suite)
    module = folder_of(suite, where) / "beside.py"
    module.write_text("SCALE = 2  # changed\n")
    assert is_refused(resumed(suite), os.path.relpath(module, suite.path))


@pytest.mark.parametrize("name", ["data/config.json", "maybe.json"])
def test_a_file_that_changed(suite, name):
    prepared(suite, "hidden")
    interrupted(suite)
    (suite.path / name).write_text('{"model": "mismatch"}')
    assert is_refused(resumed(suite), name)


@pytest.mark.parametrize("name", ["SCALE", "OTHER"])
def test_a_variable_that_changed(suite, monkeypatch, name):
    prepared(suite, "hidden")
    interrupted(suite, "-n1")
    monkeypatch.setenv(name, "2")
    assert is_refused(resumed(suite), f"${name}")


def test_an_option_of_another_plugin_that_changed(suite):
    prepared(suite, "hidden")
    with (suite.path / "conftest.py").open("a") as file:
        file.write("\n\ndef pytest_addoption(parser):\n    parser.addoption('--model-size')\n")
    interrupted(suite, "--model-size=1")
    resumed(suite, "--model-size=1", "-q").stdout.fnmatch_lines(["*--t2n-resume: 1 cells kept*"])
    result = resumed(suite, "--model-size=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*written with another value of an option of another plugin, or of an ini key;*"])


def test_records_hold_no_value_of_a_variable(suite, monkeypatch):
    monkeypatch.setenv("SCALE", "a secret value")
    prepared(suite, "hidden")
    interrupted(suite)
    text = (suite.path / "site" / "matrix.jsonl").read_text()
    assert "$SCALE" in text
    assert "secret value" not in text
