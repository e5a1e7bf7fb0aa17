"""Going on after an interruption, results of earlier sessions, and bundles of failures."""

from __future__ import annotations

import json
import zipfile

import pytest

from pytest_t2n.records.platform import this_platform
from tests.releases import RECENT

MODELS = """
    import os, signal, time
    from pathlib import Path
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(8))
    def test_model(number):
        if number == 5 and not Path("again").exists():
            Path("again").touch()
            {stop}
        return "mismatch" if number == 1 else "pass", (1,)
"""
STOP = """
            for _ in range(2000):  # the other worker may have started late
                if len(Path("runs.txt").read_text().splitlines()) >= 5:
                    break
                time.sleep(0.01)
            time.sleep(0.3)  # the last of them was asked, and has now answered
            os.kill({whom}, signal.{signal})
            time.sleep(2)
"""
CTRL_C = STOP.format(whom="os.getppid() if 'PYTEST_XDIST_WORKER' in os.environ else os.getpid()", signal="SIGINT")
KILL = STOP.format(whom="os.getpid()", signal="SIGKILL")


@pytest.mark.parametrize(("where", "stop"), [("n0", CTRL_C), ("n0", KILL), ("n2", CTRL_C), ("no_xdist", CTRL_C)])
def test_what_was_done_is_kept_and_not_run_again(suite, where, stop):
    suite.pytester.makepyfile(MODELS.format(stop=stop))
    suite.run("--t2n-report=site", mode=where, engines="0.23", alone=True)
    done = {name: cell for name, cell in suite.cells.items() if cell["status"] != "not_run"}
    assert 5 <= len(done) < 8
    before = len(suite.runs)
    result = suite.run("--t2n-report=site", "--t2n-resume", mode=where, engines="0.23", alone=True)
    assert len(suite.runs) - before == 8 - len(done)
    cells = suite.cells
    assert list(suite.statuses.values()).count("pass") == 7
    assert {name: cells[name] for name in done} == done
    assert [line["type"] for line in suite.matrix] == ["run", "plan", *["cell"] * 8, "end"]
    assert result.ret == pytest.ExitCode.TESTS_FAILED, "a failure that is kept is a failure"
    result.stdout.fnmatch_lines(
        [
            f"--t2n-resume: {len(done)} cells kept, 1 of them failed",
            f"problem: kept failure: *test_model[[]1-tract-{RECENT}[]]: mismatch at compare",
        ]
    )
    assert len(suite.run("--t2n-report=site", "--t2n-resume", engines="0.23").outlines)
    assert list(suite.statuses.values()).count("pass") == 7


def test_resume_needs_the_same_source(suite):
    suite.pytester.makepyfile(
        helper="SCALE = 1",
        test_it="""
        import pytest
        import helper

        @pytest.mark.nnef_export
        def test_model():
            return "pass", (helper.SCALE,)

        def test_that_ends_the_session(request):
            request.session.shouldstop = "interrupted"
        """,
    )
    suite.run("--t2n-report=site", engines="0.23")
    resumed = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    resumed.stdout.fnmatch_lines(["*--t2n-resume: 1 cells kept*"])
    suite.pytester.makepyfile(helper="SCALE = 2")
    result = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *was written with another state of the project's Python files; start again"])


def test_resume_needs_a_directory_the_same_engines_and_packages(suite):
    suite.pytester.makepyfile(MODELS.format(stop="pass"))
    result = suite.run("--t2n-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-resume: name the directory *"])
    suite.run("--t2n-report=site", "--t2n-resume", engines="0.23").assert_outcomes(passed=7, failed=1)
    result = suite.run("--t2n-report=site", "--t2n-resume", "--t2n-level=exact", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --t2n-resume: *matrix.jsonl was written with another --t2n-level; start again"]
    )
    result = suite.run("--t2n-report=site", "--t2n-resume", "--t2n-transforms=round_trip", engines="0.23")
    result.stderr.fnmatch_lines(["ERROR: --t2n-resume: *was written with another --t2n-transforms; start again"])
    (suite.path / "site" / "matrix.jsonl").write_text("nonsense\n")
    result = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    result.stderr.fnmatch_lines(["ERROR: --t2n-resume: *matrix.jsonl:1: *"])


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("ATEN_CPU_CAPABILITY", True),
        ("ONEDNN_DEFAULT_FPMATH_MODE", True),
        ("OPENBLAS_CORETYPE", True),
        ("TRACT_CPU_AARCH64_KIND", False),
        ("T2N_ALLOW_UNLISTED", False),
    ],
)
def test_resume_needs_the_same_kernels_of_the_reference(suite, monkeypatch, name, counts):
    monkeypatch.delenv(name, raising=False)
    this_platform.cache_clear()
    suite.pytester.makepyfile(MODELS.format(stop="pass"))
    suite.run("--t2n-report=site", engines="0.23").assert_outcomes(passed=7, failed=1)
    monkeypatch.setenv(name, "0")
    this_platform.cache_clear()
    result = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    monkeypatch.undo()
    this_platform.cache_clear()
    assert (result.ret == pytest.ExitCode.USAGE_ERROR) is counts
    if counts:
        result.stderr.fnmatch_lines(["ERROR: --t2n-resume: *matrix.jsonl was written with another environment; *"])


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_passes_are_reused_where_nothing_changed(suite, where):
    suite.pytester.makepyfile(MODELS.format(stop="pass"))
    arguments = ("--t2n-report=site", "--t2n-cache-dir=cache")
    suite.run(*arguments, mode=where, engines="0.22,0.23")
    suite.run(*arguments, mode=where, engines="0.22,0.23")
    assert len(suite.runs) == 32, "off by default"
    suite.run(*arguments, "--t2n-reuse", mode=where, engines="0.22,0.23")
    first = suite.cells
    shared = "seven models alike share one result, also where two workers have them at once"
    assert len([line for line in suite.runs[32:] if "pass" in line]) == 1, shared
    before = len(suite.runs)
    result = suite.run(*arguments, "--t2n-reuse", mode=where, engines="0.22,0.23")
    result.assert_outcomes(passed=14, failed=2)
    assert [line.split()[0] for line in suite.runs[before:]] == ["mismatch", "mismatch"]
    result.stdout.fnmatch_lines(["14 results are from earlier sessions (--t2n-reuse)"])
    for name, cell in suite.cells.items():
        current = {**cell, "times": first[name]["times"]}
        assert current.pop("reused", False) == (cell["status"] == "pass")
        earlier = {key: value for key, value in first[name].items() if key != "reused"}
        assert current == earlier or earlier["status"] == "mismatch"
    before = len(suite.runs)
    suite.run(*arguments, "--t2n-reuse", "--t2n-level=exact", mode=where, engines="0.22")
    assert suite.runs[before:].count("mismatch 0.22.4") == 1
    assert suite.runs[before:].count("pass 0.22.4") == 1, "another comparison"


def test_a_damaged_or_read_only_store_costs_nothing_but_time(suite):
    suite.pytester.makepyfile(MODELS.format(stop="pass"))
    arguments = ("--t2n-cache-dir=cache", "--t2n-reuse")
    suite.run(*arguments, engines="0.23")
    for path in (suite.path / "cache" / "results").rglob("*.json"):
        path.write_text('{"level":')
    suite.run(*arguments, engines="0.23").assert_outcomes(passed=7, failed=1)
    assert suite.runs == [f"pass {RECENT}", f"mismatch {RECENT}"] * 2, "seven models alike share one result"
    (suite.path / "file").write_text("")
    suite.run("--t2n-cache-dir=file", "--t2n-reuse", engines="0.23").assert_outcomes(passed=7, failed=1)


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_a_bundle_of_each_failure(suite, where):
    suite.pytester.makepyfile(MODELS.format(stop="pass"))
    result = suite.run("--t2n-bundle-failures=failures", "--t2n-report=site", mode=where, engines="0.22,0.23")
    result.assert_outcomes(passed=14, failed=2)
    folders = sorted((suite.path / "failures").iterdir())
    assert [folder.name.rpartition("-")[0] for folder in folders] == [
        "test_model_1-tract-0.22.4_",
        f"test_model_1-tract-{RECENT}_",
    ]
    for folder in folders:
        names = {path.name for path in folder.iterdir()}
        assert names == {"README.md", "archives", "manifest.json", "numbers.npz", "outcome.json", "samples"}
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["platform"]["versions"]["pytest-t2n"]
        (check,) = manifest["checks"]
        assert (folder / check["archive"]).read_bytes() == b"archivemismatch"
        assert [size["T"] for size in check["sizes"]] == [5, 5, 1, 7]
        arrays = zipfile.ZipFile(folder / "numbers.npz").namelist()
        assert {f"{n}.{kind}.0.npy" for n in range(4) for kind in ("input", "expected")} <= set(arrays)
        command = f"t2n matrix run --bundle {folder} --tract {check['version']}"
        assert command in (folder / "README.md").read_text()
        assert f"reproduce: {command}" in result.stdout.str()
