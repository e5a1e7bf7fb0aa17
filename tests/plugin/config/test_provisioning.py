"""Engines that are fetched while sessions start: two at once, a stale lock, a damaged cache, no room, no permission.

The engine and the cache are real; only pip is replaced, by one that copies the wheel of this machine's own cache.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from t2n_core.engine import resolve_engines
from tests.plugin.conftest import EVERYWHERE, MODES, OTHER_PLUGINS
from tests.plugin.run.test_real import GRAPHS
from tests.plugin.suites import marked

VERSION = "0.21.19"

PIP = """
import errno, hashlib, json, os, shutil, time
import t2n_core.engine.provision.index as index
import t2n_core.engine.provision.store as store

WHEEL = Path({wheel!r})
HERE = Path(__file__).parent


def run_pip(arguments, error, problem):
    with (HERE / "pip.txt").open("a") as log:
        log.write(arguments[0] + "\\n")
    if arguments[0] == "index":
        if "--json" not in arguments:  # a pip before 25.1
            return "Available versions: " + {version!r}
        return json.dumps({{"name": "tract", "versions": [{version!r}]}})
    if arguments[0] == "download":
        if (HERE / "two_sessions").exists():
            time.sleep(0.5)
        target = next(argument for argument in arguments if argument.startswith("--dest=")).removeprefix("--dest=")
        shutil.copy(WHEEL, target)
        return ""
    digest = hashlib.sha256(WHEEL.read_bytes()).hexdigest()
    info = {{"url": WHEEL.as_uri(), "archive_info": {{"hashes": {{"sha256": digest}}}}}}
    return json.dumps({{"install": [{{"download_info": info}}]}})


index.run_pip = run_pip
store.known_wheels = dict  # the wheel is not the released one

if (HERE / "disk_is_full").exists():
    def copyfileobj(source, sink, length=0):
        sink.write(source.read(1000))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store.shutil = type("shutil", (), {{**vars(shutil), "copyfileobj": staticmethod(copyfileobj)}})
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the real library."""
    (engine,) = resolve_engines(VERSION)
    path = tmp_path_factory.mktemp("index") / f"tract-{VERSION}-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.write(engine.library, f"tract/{engine.library.name}")
        archive.writestr(f"tract-{VERSION}.dist-info/METADATA", f"Name: tract\nVersion: {VERSION}\n")
    return path


@pytest.fixture
def fresh(suite, wheel):
    """A user without a cache, and one case."""
    suite.pytester.makeconftest(GRAPHS + PIP.format(wheel=str(wheel), version=VERSION))
    suite.pytester.makepyfile(test_it=marked('["x * 2.0", "x + x"]', name="test_graph"))
    return suite


def downloads(suite):
    log = suite.path / "pip.txt"
    return log.read_text().split().count("download") if log.exists() else 0


def folder(suite):
    (path,) = (entry for entry in (suite.path / "cache" / "engines" / "tract" / VERSION).iterdir() if entry.is_dir())
    return path


def run(suite, where, *arguments):
    return suite.run("--t2n-cache-dir=cache", "--t2n-report=site", *arguments, engines=VERSION, mode=where, alone=True)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_collecting_downloads_nothing_and_shows_the_ids_of_a_run(fresh, where):
    def ids(result):
        return [line for line in result.outlines if line.startswith("test_it.py::")]

    result = run(fresh, where, "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*downloading*")
    shown = ids(result)
    assert (fresh.path / "pip.txt").read_text().split() == ["index"], "asked which versions there are"
    assert not (fresh.path / "cache" / "engines").exists()
    # The versions are remembered: the newest of a line has a name without a network and without its wheel.
    result = fresh.run("--t2n-cache-dir=cache", "--t2n-offline", "--co", "-q", engines="0.21", mode=where, alone=True)
    assert (result.ret, ids(result)) == (0, shown)
    run(fresh, where).assert_outcomes(passed=2)
    assert downloads(fresh) == 1
    assert sorted(cell["nodeid"] for cell in fresh.matrix if cell["type"] == "cell") == sorted(shown)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_two_sessions_fetch_the_same_engine_at_once(fresh, where):
    (fresh.path / "two_sessions").touch()
    command = [sys.executable, "-m", "pytest", f"--t2n-tract={VERSION}", "--t2n-cache-dir=cache", *MODES[where]]
    sessions = [
        subprocess.Popen(
            [*command, *OTHER_PLUGINS, f"--t2n-report=site{n}", "-p", "no:cacheprovider"],
            cwd=fresh.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for n in range(2)
    ]  # fmt: skip
    texts = [session.communicate(timeout=120)[0] for session in sessions]
    assert [session.returncode for session in sessions] == [0, 0], texts
    assert downloads(fresh) == 1
    assert all("2 passed" in text for text in texts)
    lines = [line for text in texts for line in text.splitlines() if "downloading" in line]
    assert lines == [f"t2n: downloading tract {VERSION}"], "a line of its own"


@pytest.mark.parametrize("where", EVERYWHERE)
def test_what_a_killed_session_left_does_not_stop_the_next(fresh, where):
    run(fresh, where).assert_outcomes(passed=2)
    engine_folder = folder(fresh)
    shutil.rmtree(engine_folder)
    engine_folder.with_name(f"{engine_folder.name}.lock").write_text("12345")  # a lock that nobody holds
    scratch = engine_folder.with_name(f".{engine_folder.name}-abc")
    (scratch / "engine" / "tract").mkdir(parents=True)
    (scratch / "engine" / "tract" / "half.so").write_bytes(b"\x7fELF")
    run(fresh, where).assert_outcomes(passed=2)
    assert downloads(fresh) == 2
    assert not scratch.exists()


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("damage", ["half a library", "half a manifest"])
def test_a_half_written_engine_is_fetched_again(fresh, where, damage):
    run(fresh, where).assert_outcomes(passed=2)
    path = next(folder(fresh).glob("tract/*.so")) if "library" in damage else folder(fresh) / "manifest.json"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    result = run(fresh, where, "--t2n-offline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --t2n-tract={VERSION}: *"])
    result.stderr.no_fnmatch_line("*Traceback*")
    run(fresh, where).assert_outcomes(passed=2)
    assert downloads(fresh) == 2


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_cache_that_cannot_be_written(fresh, where):
    (fresh.path / "cache").write_text("a file in its place")  # the mode of a folder does not stop root
    result = run(fresh, where)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --t2n-tract={VERSION}: tract {VERSION} could not be stored under *cache*"])
    result.stderr.no_fnmatch_line("*Traceback*")
    (fresh.path / "cache").unlink()
    run(fresh, where).assert_outcomes(passed=2)
    for path in [*(fresh.path / "cache").rglob("*"), fresh.path / "cache"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        run(fresh, where, "--t2n-reuse").assert_outcomes(passed=2)
        assert downloads(fresh) == 1
    finally:
        for path in [fresh.path / "cache", *(fresh.path / "cache").rglob("*")]:
            path.chmod(0o755)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_full_disk_while_an_engine_is_unpacked(fresh, where):
    (fresh.path / "disk_is_full").touch()
    result = run(fresh, where)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --t2n-tract={VERSION}: * No space left on device*"])
    assert not list((fresh.path / "cache").rglob("*.so")), "nothing half"
    (fresh.path / "disk_is_full").unlink()
    run(fresh, where).assert_outcomes(passed=2)
