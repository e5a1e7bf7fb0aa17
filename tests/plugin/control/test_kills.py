"""Engines that hang or eat memory, engine workers and xdist workers killed at random: one cell each, named, no more."""

from __future__ import annotations

import sys
import textwrap

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.plugin.conftest import EVERYWHERE
from tests.plugin.run.test_real import GRAPHS
from tests.plugin.suites import marked
from tests.releases import RECENT

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

HANGS = "relu(" * 60 + "x * 2.0" + ")" * 60
"""tract reads nested calls in time exponential in their depth."""


@pytest.mark.parametrize("where", EVERYWHERE)
def test_an_engine_that_hangs_or_eats_memory_is_one_cell(suite, where):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(
        f"""
        import pytest

        GRAPHS = {{"right": "x * 2.0", "hangs": "{HANGS}", "eats": "tile(x, repeats=[30000, 30000])", "too": "x + x"}}

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("name", GRAPHS)
        def test_graph(name):
            return GRAPHS[name], (1,)
        """
    )
    arguments = ("--t2n-report=site", "--t2n-timeout=4", CACHE)
    result = suite.run(*arguments, engines="0.21.19", mode=where, alone=True)
    result.assert_outcomes(passed=2, failed=2)
    cells = {name[len("test_graph[") : -len("-tract-0.21.19]")]: cell for name, cell in suite.cells.items()}
    assert {name: (cell["status"], cell["stage"]) for name, cell in cells.items()} == {
        "right": ("pass", "compare"),
        "hangs": ("timeout", "load"),
        "eats": ("oom", "run"),
        "too": ("pass", "compare"),
    }
    assert "did not answer in time" in cells["hangs"]["error"]["message"]


COMMAND = """
    #!{python} -P
    import os, pathlib, sys, time
    if sys.argv[1:] == ["--version"]:
        print("tract {release}")
        sys.exit()
    if sys.argv[1:] == ["--help"]:
        sys.exit()
    import numpy as np
    options = dict(option.split("=", 1) for option in sys.argv if option.startswith("--") and "=" in option)
    graph = pathlib.Path(sys.argv[1], "graph.nnef").read_text()
    if "relu" in graph:
        time.sleep(100)
    if "neg" in graph:
        os.kill(os.getpid(), 11)
    if "tile" in graph:
        np.ones(1 << 33)
    x = np.load(options["--input-from-bundle"])["x"]
    np.savez(options["--save-outputs"], y=x * 2)
"""


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_a_command_that_hangs_dies_or_eats_memory_is_one_cell(suite, where):
    binary = suite.path / "tract"
    binary.write_text(textwrap.dedent(COMMAND).strip().format(python=sys.executable, release=RECENT))
    binary.chmod(0o755)
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(
        marked('["x * 2.0", "relu(x)", "neg(x)", "tile(x, repeats=[9, 9])", "x + x"]', name="test_graph")
    )
    options = ("--t2n-report=site", "--t2n-timeout=4", "--t2n-memory=2G", CACHE)
    suite.run(*options, engines=f"path:{binary}", mode=where, alone=True)
    statuses = {name.partition("[")[2].partition("(")[0][:5]: status for name, status in suite.statuses.items()}
    ends = {"x * 2": "pass", "relu": "timeout", "neg": "crash", "tile": "error", "x + x": "pass"}
    assert statuses == ends, "Python ends with status 1 where there is no memory, which a command line calls an error"
    assert all(cell["error"]["message"] for cell in suite.cells.values() if cell["status"] != "pass")


@pytest.mark.parametrize("given", [("--t2n-memory=200M",), ("-o", "t2n_memory=0.2 GB")])
def test_the_memory_of_a_case_is_an_option(suite, given):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(
        marked('["x * 2.0", "sum_reduce(tile(x, repeats=[3000, 5000]), axes=[0])"]', name="test_graph")
    )
    suite.run("--t2n-report=site", CACHE, *given, engines=RECENT, alone=True)
    assert list(suite.statuses.values()) == ["pass", "oom"]
    result = suite.run("--t2n-memory=much", engines=RECENT)
    result.stderr.fnmatch_lines(["ERROR: --t2n-memory: 'much' is not a memory size such as 4G or 500M"])


CELLS = """
    import os, random, signal, threading, time
    from pathlib import Path
    import pytest

    CASES, HANGS = {cases}, "{hangs}"
    drawn = random.Random(11).sample(range(CASES), 10)
    ENGINE, WORKER = set(drawn[:5]), set(drawn[5:])

    def engine_workers():
        for task in Path("/proc/self/task").iterdir():
            for pid in (task / "children").read_text().split():
                if b"t2n_core.engine" in Path(f"/proc/{{pid}}/cmdline").read_bytes():
                    yield int(pid)

    def kill_engines_soon():
        for _ in range(2):  # one per version
            time.sleep(1.0)
            for pid in engine_workers():
                os.kill(pid, signal.SIGKILL)

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(CASES))
    def test_cell(number):
        if number in ENGINE:
            threading.Thread(target=kill_engines_soon, daemon=True).start()
            return HANGS, (1,)
        mark = Path(f"killed_{{number}}")
        if number in WORKER and "PYTEST_XDIST_WORKER" in os.environ and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "x * 2.0", (1,)
"""


def run_kills(suite, cases, mode):
    """The cells that did not pass, of those that nobody killed."""
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(CELLS.format(cases=cases, hangs=HANGS))
    arguments = ("--t2n-report=site", "--t2n-timeout=5", "--max-worker-restart=20", CACHE)
    options = arguments if mode != "plain" else tuple(argument for argument in arguments if "worker" not in argument)
    suite.run(*options, engines=f"0.21.19,{RECENT}", mode=mode, alone=True)
    cells = suite.cells
    assert len(cells) == 2 * cases, "every planned cell has its record"
    lost = {name: cell for name, cell in cells.items() if cell["status"] != "pass"}
    assert all(cell["error"]["message"] for cell in lost.values())
    return lost


@pytest.mark.parametrize(
    ("where", "cases"), [("plain", 50), ("n2", 50), pytest.param("n2", 1000, marks=pytest.mark.nightly)]
)
def test_ten_random_kills_lose_the_cells_in_flight_only(suite, where, cases):
    check_lost(run_kills(suite, cases, where), where)


def check_lost(lost, where):
    """Five cases hang until their engine is killed; five more tests killed their worker of xdist."""
    crashed = [cell for cell in lost.values() if cell["error"]["error_class"] == "WorkerCrash"]
    assert len(crashed) == (5 if where == "n2" else 0)
    killed = [cell for cell in lost.values() if cell["error"]["error_class"] != "WorkerCrash"]
    assert {cell["status"] for cell in killed} <= {"oom", "timeout", "crash"}
    # A kill may also hit the engine between two cells of the same case, or the cell behind it.
    assert len({cell["case"] for cell in killed}) <= 10
    assert 5 <= len(killed) <= 20
