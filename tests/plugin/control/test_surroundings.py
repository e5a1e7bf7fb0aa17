"""Sessions with a real engine where little is there: descriptors, memory, a home, a folder for temporary files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.plugin.conftest import FAKE_CONFTEST, OTHER_PLUGINS
from tests.plugin.run.test_real import GRAPHS
from tests.plugin.suites import marked
from tests.releases import RECENT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of the shell")
CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""
TESTS = marked('["x * 2.0", "x * 2.01"], ids=["right", "wrong"]', name="test_graph")
UNICODE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SURROUNDINGS: dict[str, tuple[str, dict[str, str | None]]] = {
    "40 descriptors": ("ulimit -n 40", {}),
    "2 GB": ("ulimit -v 2000000", {}),
    "no home": (":", {"HOME": None}),
    "a home that is none": (":", {"HOME": "/nonexistent"}),
    "a folder of odd name": ("mkdir -p 'odd d ü'", {"TMPDIR": "odd d ü"}),
    "no temporary folder": (":", {"TMPDIR": "/nonexistent"}),
    "the C locale": (":", UNICODE),
    "no asserts": (":", {"PYTHONOPTIMIZE": "2"}),
    "warnings are errors": (":", {"PYTHONWARNINGS": "error"}),
    "no input": ("exec <&-", {}),
}


def run(suite, before: str, changes: dict[str, str | None], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite in a shell, after a command of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **changes}
    pytest_arguments = [*OTHER_PLUGINS, "-p", "no:cacheprovider", "--t2n-report=site", CACHE, *arguments]
    return subprocess.run(
        ["sh", "-c", f'{before}; exec "$0" -m pytest "$@"', sys.executable, *pytest_arguments],
        cwd=suite.path,
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("name", list(SURROUNDINGS))
def test_results_are_the_same(suite, name):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(test_it=TESTS)
    done = run(suite, *SURROUNDINGS[name], "--t2n-tract=0.21.19", "-n", "0")
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert suite.statuses == {"test_graph[right-tract-0.21.19]": "pass", "test_graph[wrong-tract-0.21.19]": "mismatch"}


def test_workers_share_few_descriptors(suite):
    suite.pytester.makeconftest(GRAPHS)
    nine = TESTS.replace('["x * 2.0", "x * 2.01"], ids=["right", "wrong"]', '["x * 2.0"] * 9')
    suite.pytester.makepyfile(test_it=nine)
    done = run(suite, "ulimit -n 40", {}, f"--t2n-tract=0.21.19,{RECENT}", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(suite.statuses.values()) == ["pass"] * 18


def test_files_that_cannot_grow_cost_the_records_and_not_the_results(suite):
    suite.pytester.makeconftest(FAKE_CONFTEST)
    suite.pytester.makepyfile(test_it=TESTS.replace("value, (1,)", '"pass", (1,)'))
    done = run(suite, "ulimit -f 1", {}, "--t2n-tract=0.23", "-n", "0", "-s")
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "problem: " in done.stdout
    assert "2 passed" in done.stdout
    assert not (suite.path / "site" / "index.html").exists()


THRICE = """
import sys
import pytest

statuses = [int(pytest.main(sys.argv[1:])) for _ in range(3)]
print("STATUSES", statuses)
"""


def test_a_process_may_hold_several_sessions(suite):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(test_it=TESTS)
    script = Path(suite.path / "thrice.py")
    script.write_text(THRICE)
    arguments = (*OTHER_PLUGINS, "--t2n-report=site", "--t2n-tract=0.21.19", CACHE, "test_it.py")
    result = suite.pytester.run(sys.executable, script, *arguments)
    result.stdout.fnmatch_lines(["STATUSES [[]1, 1, 1[]]"])
    assert result.stdout.str().count("1 failed, 1 passed") == 3
    assert sorted(suite.statuses.values()) == ["mismatch", "pass"]
