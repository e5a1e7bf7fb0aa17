"""What the process that keeps the book holds of each cell: bytes that are counted, never time."""

from __future__ import annotations

import atexit
import gc
import sys
from pathlib import Path

import pytest

from tests.plugin.conftest import FAKE_CONFTEST, OTHER_PLUGINS
from tests.releases import RECENT

SUITE = """
    import pytest

    @pytest.mark.nnef_export(target="tract")
    @pytest.mark.parametrize("number", range({cases}))
    def test_model(number):
        return "pass", (1,)
"""
COUNTING = """

import gc
import tracemalloc

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        tracemalloc.start()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        return
    gc.collect()
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/pytest_t2n/*")])
    Path(__file__).with_name("held.txt").write_text(str(sum(trace.size for trace in ours.traces)))
    tracemalloc.stop()
"""
FEW, MANY = 10, 70


@pytest.mark.parametrize("arguments", [["--t2n-report=site"], []], ids=["report", "no report"])
@pytest.mark.parametrize(("mode", "bound"), [("n2", 400), ("plain", 700)])
def test_the_controller_keeps_no_records(suite, mode, bound, arguments):
    suite.pytester.makeconftest(FAKE_CONFTEST + COUNTING)
    memory = {}
    for cases in (FEW, MANY):
        suite.pytester.makepyfile(SUITE.format(cases=cases))
        suite.run(*arguments, "-q", mode=mode, alone=True).assert_outcomes(passed=3 * cases)
        memory[cases] = int((suite.path / "held.txt").read_text())
    # The records of this suite take 2500 bytes each. In one process each of pytest's items has the cell that it is.
    assert (memory[MANY] - memory[FEW]) / (3 * (MANY - FEW)) < bound, memory


@pytest.mark.parametrize(("engines", "arguments", "times"), [("0.23", (), 1), ("", (), 0), ("0.23", ("--co",), 0)])
def test_the_end_of_python_frees_no_object_of_a_session_with_engines(suite, monkeypatch, engines, arguments, times):
    at_exit = []
    monkeypatch.setattr(atexit, "register", lambda call, *_: at_exit.append(call))
    suite.pytester.makepyfile(SUITE.format(cases=1))
    suite.run(*arguments, engines=engines)
    assert at_exit.count(gc.freeze) == times


ONE_ENGINE = f"""
from pathlib import Path

import pytest_t2n.config.engines
from t2n_core.engine.provision.resolved import ResolvedEngine

ENGINE = ResolvedEngine("wheel", "{RECENT}", Path("/none/libtract.so"), "ab" * 32, "0.23")
pytest_t2n.config.engines.load_resolver = lambda: lambda spec, **options: [ENGINE]
"""
LISTING = """
import sys
import pytest
pytest.main(sys.argv[2:])
open(sys.argv[1], "w").write("\\n".join(sys.modules))
"""
ONLY_FOR_RUNNING = ("torch", "numpy", "rich", "packaging.specifiers", "pytest_t2n.run", "pytest_t2n.report")


def test_collecting_loads_nothing_that_only_running_needs(suite):
    suite.pytester.makeconftest(ONE_ENGINE)
    suite.pytester.makepyfile(SUITE.format(cases=1))
    arguments = ["-q", "--co", "--t2n-tract=0.23", *OTHER_PLUGINS]
    result = suite.pytester.run(sys.executable, "-c", LISTING, "loaded.txt", *arguments)
    result.stdout.fnmatch_lines([f"*test_model[[]0-tract-{RECENT}[]]"])
    loaded = (suite.path / "loaded.txt").read_text().split()
    assert [name for name in ONLY_FOR_RUNNING if name in loaded] == []


OF_WORKERS = """

import gc
import tracemalloc

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session):
    if hasattr(session.config, "workerinput"):
        tracemalloc.start()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        gc.collect()
        held, descriptors = tracemalloc.get_traced_memory()[0], len(os.listdir("/proc/self/fd"))
        Path(__file__).with_name(f"{os.environ['PYTEST_XDIST_WORKER']}.txt").write_text(f"{held} {descriptors}")
"""
ON_LINUX = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")


@ON_LINUX
def test_a_worker_keeps_little_of_a_cell_and_no_file(suite):
    suite.pytester.makeconftest(FAKE_CONFTEST + OF_WORKERS)
    memory, descriptors = {}, {}
    for cases in (FEW, MANY):
        suite.pytester.makepyfile(SUITE.format(cases=cases))
        suite.run("--t2n-report=site", "-q", mode="n2", alone=True).assert_outcomes(passed=3 * cases)
        readings = [(suite.path / f"gw{number}.txt").read_text().split() for number in range(2)]
        memory[cases] = sum(int(size) for size, _ in readings)
        descriptors[cases] = [int(count) for _, count in readings]
    # 4,000 bytes were measured; a record has 2,500, and an archive with its samples more
    assert (memory[MANY] - memory[FEW]) / (3 * (MANY - FEW)) < 6_000, memory
    assert descriptors[MANY] == descriptors[FEW]


PEAK = """
import sys
import pytest

pytest.main(sys.argv[1:])
print("PEAK", next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


@ON_LINUX
def test_a_collected_cell_takes_little_memory(suite):
    """Most of it is pytest's: an item, its fixtures and its call."""
    (suite.path / "peak.py").write_text(PEAK)
    arguments = (*OTHER_PLUGINS, "--collect-only", "-q", "--t2n-tract=0.21,0.22,0.23")
    peaks = {}
    for cases in (100, 2_000):
        suite.pytester.makepyfile(SUITE.format(cases=cases))
        result = suite.pytester.run(sys.executable, "peak.py", *arguments)
        peaks[3 * cases] = int(result.outlines[-1].removeprefix("PEAK ")) << 10
    assert (peaks[6_000] - peaks[300]) / 5_700 < 6_000, peaks
