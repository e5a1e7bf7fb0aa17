"""A file knows whether it is whole: sessions that are killed, stopped, resumed, or begun twice in one folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from pytest_t2n.cli import main
from tests.plugin.conftest import EVERYWHERE, OTHER_PLUGINS
from tests.plugin.suites import marked
from tests.releases import RECENT

FORTY = """
    import os, signal, time
    from pathlib import Path
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(40))
    def test_model(number):
        if number == 8 and not Path("again").exists():
            Path("again").touch()
            file = Path("site", "matrix.jsonl")
            for _ in range(1000):  # the other worker may have started late
                if file.read_text().count('"type":"cell"') >= 8:
                    break
                time.sleep(0.01)
            os.kill(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid(), signal.{signal})
            time.sleep(60)
        return "mismatch" if number == 30 else "pass", (1,)
"""


def commands(folder):
    """Each reader with its arguments, and where its product is: a file, or None for what it prints."""
    return {
        "md": (["md", "site"], None),
        "html": (["html", "site", "-o", "page"], "page/index.html"),
        "badge": (["badge", "site", "-o", "badges"], f"badges/badge-tract-{RECENT}.json"),
        "csv": (["csv", "site"], None),
        "ctrf": (["ctrf", "site"], None),
        "query": (["query", "site"], None),
        "diff": (["diff", "site", "site"], None),
        "merge": (["merge", "site", "-o", "merged.jsonl"], None),
        "accept": (["accept", "site", "--expect", "known.toml"], None),
    }


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("where", ["n0", "n2"])
def test_a_killed_session_is_read_as_incomplete_by_every_reader(suite, where, name, capsys, monkeypatch):
    suite.pytester.makepyfile(FORTY.format(signal=name))
    suite.pytester.makepyfile(test_first="def test_nothing(): pass")
    suite.run("test_first.py", "--t2n-report=site", engines="0.23")
    assert (suite.path / "site" / "index.html").exists()
    tests = next(path.name for path in suite.path.glob("test_a_killed*.py"))
    suite.run(tests, "--t2n-report=site", mode=where, engines="0.23", alone=True)
    types = [line["type"] for line in suite.matrix]
    assert types[:2] == ["run", "plan"]
    assert "end" not in types
    done = len(suite.cells)
    assert done == 8 if where == "n0" else 8 <= done < 40
    names = [path.name for path in (suite.path / "site").iterdir() if not path.name.startswith(".")]
    assert names == ["matrix.jsonl"], "a page of the session before would be believed"

    monkeypatch.chdir(suite.path)
    words = f"incomplete: {done} of 40 cells"
    for reader, (arguments, product) in commands(suite.path).items():
        assert main(["matrix", *arguments]) == 1, reader
        out, err = capsys.readouterr()
        assert words in err
        text = (suite.path / product).read_text() if product else out
        if reader not in ("merge", "accept"):
            assert words in text, reader
        assert main(["matrix", *arguments, "--allow-incomplete"]) == 0, reader
        assert words in capsys.readouterr().err
    assert main(["matrix", "md", "merged.jsonl"]) == 1, "what was merged is not whole either"
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == f"**{words}**"
    assert f"| tract {RECENT} | {done} | {40 - done} |" in lines, "cells that have no record did not run"
    head, _, body = (suite.path / "page" / "index.html").read_text().partition("<body>")
    assert f"<title>{words}" in head
    assert body.index(words) < body.index("tiles")

    result = suite.run(tests, "--t2n-report=site", "--t2n-resume", mode=where, engines="0.23", alone=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED, "one of the others computes wrong numbers"
    assert [line["type"] for line in suite.matrix] == ["run", "plan", *["cell"] * 40, "end"]
    assert main(["matrix", "md", "site"]) == 0
    assert "**incomplete" not in capsys.readouterr().out
    assert (suite.path / "site" / "index.html").exists()


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_session_that_was_stopped_is_whole_and_says_so(suite, where, capsys):
    suite.pytester.makepyfile(marked("range(30)", '"mismatch"'))
    suite.run("--maxfail=2", "--t2n-report=site", mode=where, engines="0.23")
    (end,) = (line for line in suite.matrix if line["type"] == "end")
    assert re.fullmatch(r"stopping after \d failures", end["stopped"])
    assert suite.matrix[-1] == end
    left = list(suite.statuses.values()).count("not_run")
    assert 0 < left <= 28
    words = f"stopped early: {left} of 30 cells did not run: {end['stopped']}"
    for file in ("index.html", "summary.md"):
        assert words.replace("_", "\\_") in (suite.path / "site" / file).read_text()
    assert main(["matrix", "md", str(suite.path / "site")]) == 0, "all that was planned has its record"
    out, err = capsys.readouterr()
    assert words in out
    assert words in err


@pytest.mark.parametrize("where", EVERYWHERE)
def test_sessions_without_cells_are_whole(suite, where, capsys):
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\ndef test_it(): return 'pass', (1,)")
    suite.run("-k", "nothing", "--t2n-report=site", mode=where, engines="0.23")
    assert [line["type"] for line in suite.matrix] == ["run", "plan", "end"]
    suite.run("--t2n-report=site", mode=where, engines="")
    assert [line["type"] for line in suite.matrix] == ["run", "plan", "end"]
    assert main(["matrix", "md", str(suite.path / "site")]) == 0


def test_a_session_that_could_not_collect_has_no_plan(suite, capsys):
    suite.run("nowhere.py", "--t2n-report=site", engines="0.23")
    assert [line["type"] for line in suite.matrix] == ["run", "end"]
    assert main(["matrix", "md", str(suite.path / "site")]) == 1
    assert "incomplete: 0 cells, and no plan states how many there should be" in capsys.readouterr().out


def test_a_torn_line_is_named_and_its_cell_run_again(suite, capsys):
    suite.pytester.makepyfile(marked("range(4)", '"pass"'))
    suite.run("--t2n-report=site", engines="0.23")
    path = suite.path / "site" / "matrix.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:70])
    assert main(["matrix", "md", str(path)]) == 1
    out, err = capsys.readouterr()
    assert f"{path}:6: the last line is incomplete" in err
    assert "**incomplete: 3 of 4 cells**" in out
    result = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    result.stdout.fnmatch_lines(["--t2n-resume: *matrix.jsonl:6: the last line is incomplete; *"])
    assert len(suite.runs) == 5
    assert [line["type"] for line in suite.matrix] == ["run", "plan", *["cell"] * 4, "end"]


def test_a_session_that_goes_on_with_other_tests_has_their_plan(suite, capsys):
    suite.pytester.makepyfile(FORTY.format(signal="SIGKILL"))
    suite.run("--t2n-report=site", engines="0.23", alone=True)
    (tests,) = (path.name for path in suite.path.glob("test_*.py"))
    suite.run(f"{tests}::test_model[20-tract-{RECENT}]", "--t2n-report=site", "--t2n-resume", engines="0.23")
    assert len(suite.cells) == 8 + 1
    assert main(["matrix", "md", str(suite.path / "site")]) == 0


SLOW = """
    import time
    from pathlib import Path
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(2))
    def test_model(number):
        Path("begun").touch()
        while not Path("go").exists():
            time.sleep(0.01)
        return "pass", (1,)
"""


@pytest.fixture
def running(suite):
    """A session that writes into `site` until there is a file `go`."""
    suite.pytester.makepyfile(SLOW)
    suite.pytester.makepyfile(test_other="import pytest\n@pytest.mark.nnef_export\ndef test_it(): return 'pass', (1,)")
    (tests,) = (path.name for path in suite.path.glob("test_*.py") if path.name != "test_other.py")
    arguments = (*OTHER_PLUGINS, "-p", "no:cacheprovider", "-q", "--t2n-tract=0.23", "--t2n-report=site", tests)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*sys.path]))}
    with (suite.path / "first").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments], cwd=suite.path, env=environment, stdout=output, stderr=output
        )
        for _ in range(3000):
            if (suite.path / "begun").exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        yield process
        process.kill()
        process.wait()


def test_a_second_session_in_the_same_folder_is_refused(suite, running, capsys):
    result = suite.run("test_other.py", "--t2n-report=site", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --t2n-report=*: another session is writing its records to *site: wait *, or name another directory"]
    )
    assert (
        main(["matrix", "merge", str(suite.path / "site"), "-o", str(suite.path / "site"), "--allow-incomplete"]) == 1
    )
    assert "another session is writing" in capsys.readouterr().err
    suite.run("test_other.py", "--t2n-report=elsewhere", engines="0.23").assert_outcomes(passed=1)
    (suite.path / "go").touch()
    assert running.wait(60) == 0, (suite.path / "first").read_text()
    assert set(suite.statuses) == {f"test_model[0-tract-{RECENT}]", f"test_model[1-tract-{RECENT}]"}
    suite.run("test_other.py", "--t2n-report=site", engines="0.23").assert_outcomes(passed=1)


def test_a_killed_session_does_not_keep_its_folder(suite, running):
    running.send_signal(signal.SIGKILL)
    running.wait()
    suite.run("test_other.py", "--t2n-report=site", engines="0.23").assert_outcomes(passed=1)
    assert set(suite.statuses) == {f"test_it[tract-{RECENT}]"}


def test_a_baseline_that_is_not_whole_is_named(suite):
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\ndef test_it(): return 'pass', (1,)")
    suite.run("--t2n-report=site", engines="0.23")
    lines = (suite.path / "site" / "matrix.jsonl").read_text().splitlines(keepends=True)
    before = suite.path / "before.jsonl"
    before.write_text("".join(lines[:-2]) + lines[-2][:40])
    assert json.loads(lines[1])["type"] == "plan"
    result = suite.run("--t2n-report=site", f"--t2n-baseline={before}", engines="0.23")
    result.stdout.fnmatch_lines(
        ["*before.jsonl:3: the last line is incomplete; *", "the baseline is incomplete: incomplete: 0 of 1 cells"]
    )
    summary = (suite.path / "site" / "summary.md").read_text()
    assert "(the baseline is incomplete: incomplete: 0 of 1 cells)" in summary
    assert "The baseline is incomplete" in (suite.path / "site" / "index.html").read_text()
