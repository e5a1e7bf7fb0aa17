"""Bundles on real engines: written by a session, judged without torch; and a failure that its bundle reproduces."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import time

import pytest

from pytest_t2n.cli import main
from pytest_t2n.cli.judging.plan import plan_checks
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.file import read_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.index import RecordIndex, completeness_of
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.schema import cells_of
from pytest_t2n.run.bundle_reader import read_bundle
from pytest_t2n.run.bundles import MANIFEST
from t2n_core.engine.provision import index
from t2n_core.engine.provision.store import default_cache_dir
from tests.plugin.run.test_real import GRAPHS
from tests.releases import RECENT

CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""

MODELS = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("graph", [
        pytest.param("x * 2.0", id="right"), pytest.param("mul(x, 2.01)", id="wrong"),
        pytest.param("unsqueeze(x * 2.0, axes=[-1])", id="panics"),
    ])
    def test_graph(graph):
        return graph, (1,)
"""


def t2n(*arguments, cwd):
    """The command in a process that says what it loaded."""
    code = (
        "import sys; from pytest_t2n.cli import main; status = main(sys.argv[1:]); "
        "print('LOADED', sorted({'torch', 't2n_core.export.model'} & set(sys.modules))); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert "LOADED []" in done.stdout, done.stdout + done.stderr
    return done


def test_an_offline_run_fetches_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / MANIFEST).write_text('{"schema": 1, "platform": {"key": ""}, "checks": []}')
    monkeypatch.setattr(index, "run_pip", lambda *arguments: pytest.fail("it asks the index"))
    select = ["--tract", RECENT, "--offline", "--cache-dir", str(tmp_path / "cache")]
    assert main(["matrix", "run", "--bundle", str(tmp_path), *select]) != 0
    assert RECENT in capsys.readouterr().err


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_a_bundle_is_judged_without_torch_as_the_session_judged_it(suite, where):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(MODELS)
    options = ("--t2n-report=site", "--t2n-bundle=bundle", "--t2n-bundle-failures=failures", f"--t2n-cache-dir={CACHE}")
    result = suite.run(*options, engines=f"0.21.19,{RECENT}", mode=where, alone=True)
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines([f"bundle of 6 checks: t2n matrix run --bundle {suite.path}/bundle --tract all"])
    result.stdout.fnmatch_lines(["by the definitions of the operators: 2 exporter errors, 0 engine errors"])
    bundle = suite.path / "bundle"
    assert sorted(path.name for path in bundle.iterdir()) == [".gitignore", "archives", "manifest.json", "samples"]
    assert len(list((bundle / "archives").iterdir())) == 3, "engines share what is the same"
    assert len(list((bundle / "samples").iterdir())) == 1

    select = ("--tract", f"0.21.19,{RECENT}", "--cache-dir", CACHE, "--report", "again", "-j", "2")
    done = t2n("matrix", "run", "--bundle", "bundle", *select, cwd=suite.path)
    assert done.returncode == 1
    records = read_records(suite.path / "again" / "matrix.jsonl")
    state = completeness_of(records)
    assert (state.planned, state.notice) == (6, "")
    cells = {cell.nodeid: cell for cell in cells_of(records)}
    first = {cell.nodeid: cell for cell in cells_of(read_records(suite.path / "site" / "matrix.jsonl"))}
    graphs = RecordIndex.of(records).graphs
    assert all("external(shape=[2, 3])" in graphs[cell.graph] for cell in cells.values())
    assert {nodeid: (cell.status, cell.stage, cell.outputs) for nodeid, cell in cells.items()} == {
        nodeid: (cell.status, cell.stage, cell.outputs) for nodeid, cell in first.items()
    }
    authors = {nodeid: cell.facts.get("author") for nodeid, cell in cells.items()}
    assert authors == {nodeid: cell.facts.get("author") for nodeid, cell in first.items()}
    assert {nodeid for nodeid, author in authors.items() if author == "exporter"} == {n for n in cells if "wrong" in n}
    if where == "plain":
        failures = suite.path / "failures"
        assert len(list(failures.iterdir())) == 4
        (wrong,) = failures.glob(f"test_graph_wrong-tract-{RECENT}*")
        assert "mul(x, 2.01)" in (wrong / "graph.nnef").read_text()
        line = next(line for line in (wrong / "README.md").read_text().splitlines() if "t2n matrix" in line)
        done = t2n(*line.split()[1:], "--cache-dir", CACHE, cwd=suite.path)
        assert (done.returncode, "mismatch" in done.stdout) == (1, True)


def test_the_archive_of_the_version_next_to_it_is_taken(tmp_path):
    import msgspec

    from pytest_t2n.run.bundles import CheckEntry, write_manifest

    def entry(version, case="a.py::test_a"):
        nodeid = f"{case}[tract-{version}]"
        return CheckEntry(
            nodeid, case, f"tract-{version}", "tract", version, version, "archives/a.tar", "samples/s.npz", [{}], ["y"],
            "close",
        )  # fmt: skip

    entries = [entry("0.20.9"), entry("0.22.10"), entry("0.22.9"), entry("0.22.9", "b.py::test_b")]
    write_manifest(tmp_path, entries, this_platform())
    checks = read_bundle(tmp_path).checks

    def chosen(version):
        return [plan[0].version for plan in plan_checks(checks, SelectedEngine("tract", version, version), "*test_a")]

    assert [chosen(version) for version in ("0.19.2", "0.20.9", "0.22.8", "0.22.9", "0.23.0.dev5")] == [
        ["0.20.9"], ["0.20.9"], ["0.20.9"], ["0.22.9"], ["0.22.10"]
    ]  # fmt: skip
    assert plan_checks(checks, SelectedEngine("khronos", "1.0.5", "1.0.5")) == []
    assert msgspec.json.decode((tmp_path / "manifest.json").read_bytes())["schema"] == 1


def test_any_tier_of_a_version_will_do_and_each_check_counts_once():
    from pytest_t2n.run.bundles import CheckEntry

    def entry(label, archive):
        name = f"tract-{label.replace(' ', '-')}"
        return CheckEntry(
            f"a.py::test_a[{name}]", "a.py::test_a", name, "tract", RECENT, label, archive, "s.npz", [{}], ["y"],
            "close",
        )  # fmt: skip

    # a test that exports twice, in a session of two tiers
    checks = [entry(label, archive) for label in (RECENT, f"{RECENT} no-fma") for archive in ("a.tar", "b.tar")]
    for label, expected_label in (
        (RECENT, RECENT),
        (f"{RECENT} no-fma", f"{RECENT} no-fma"),
        (f"{RECENT} no-avx512", RECENT),
    ):
        (plan,) = plan_checks(checks, SelectedEngine("tract", RECENT, label))
        assert [(check.label, check.archive) for check in plan] == [
            (expected_label, "a.tar"),
            (expected_label, "b.tar"),
        ]


def test_a_directory_that_is_no_bundle_is_left_alone(suite):
    suite.pytester.makepyfile(MODELS)
    result = suite.run("--t2n-bundle=.", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-bundle=*: the directory holds something that is not a bundle"])
    done = t2n("matrix", "run", "--bundle", ".", "--tract", "0.23", cwd=suite.path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: . is not a bundle: it has no manifest.json; `t2n bundle . ")


SLOW = """
    import pytest

    HANGS = "relu(" * 60 + "x * 2.0" + ")" * 60  # tract reads nested calls in time exponential in their depth

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("graph", [
        pytest.param("x * 2.0", id="a"), pytest.param(HANGS, id="b"), pytest.param("x * 2.0", id="c"),
    ])
    def test_graph(graph):
        return graph, (1,)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_run_that_is_killed_or_interrupted_leaves_what_it_judged(suite, name, capsys):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(SLOW)
    suite.run("--t2n-bundle=bundle", "--t2n-timeout=1", f"--t2n-cache-dir={CACHE}", engines=RECENT, alone=True)
    site = suite.path / "site"
    select = ["--tract", RECENT, "--offline", "--cache-dir", CACHE, "--report", str(site), "--timeout", "5"]
    command = [sys.executable, "-m", "pytest_t2n.cli", "matrix", "run", "--bundle", "bundle", *select]
    heeds_ctrl_c = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also under nohup
    process = subprocess.Popen(command, cwd=suite.path, stderr=subprocess.PIPE, text=True, preexec_fn=heeds_ctrl_c)
    for _ in range(3000):
        if (site / MATRIX_FILE).exists() and '"type":"cell"' in (site / MATRIX_FILE).read_text():
            break
        time.sleep(0.01)
    assert main(["matrix", "run", "--bundle", str(suite.path / "bundle"), *select]) == 1
    assert f"another session is writing its records to {site}" in capsys.readouterr().err
    process.send_signal(getattr(signal, name))
    stderr = process.communicate(timeout=60)[1]
    types = [line["type"] for line in suite.matrix]
    assert types[:2] == ["run", "plan"]
    status = main(["matrix", "md", str(site)])
    printed = capsys.readouterr().out
    if name == "SIGKILL":
        assert (types.count("cell"), "end" in types, status) == (1, False, 1)
        assert "**incomplete: 1 of 3 cells**" in printed
        assert not (site / "index.html").exists()
    else:
        assert (process.returncode, "interrupted" in stderr) == (130, True)
        assert list(suite.statuses.values()) == ["pass", "not_run", "not_run"]
        assert (suite.matrix[-1]["stopped"], status) == ("interrupted", 0)
        assert "**stopped early: 2 of 3 cells did not run: interrupted**" in printed.replace("\\_", "_")
        assert (site / "index.html").exists()
