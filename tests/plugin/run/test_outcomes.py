"""What becomes of cells: statuses, failure texts, records, in every way of running."""

from __future__ import annotations

import json

import pytest

from tests.plugin.suites import marked
from tests.releases import RECENT

MANY = """
    import pytest

    @pytest.mark.nnef_export()
    @pytest.mark.parametrize("model", ["pass", "mismatch", "crash@0.22.4", "timeout", "oom", "unsupported", "bug"])
    def test_model(model):
        return model, (1,)

    def test_other():
        pass
"""
WORDS = {
    "mismatch": "mismatch",
    "timeout": "timeout",
    "oom": "oom",
    "unsupported": "unsupported",
    "bug": "error",
}
VERSIONS = ("0.21.19", "0.22.4", RECENT)


def test_every_cell_has_its_own_outcome_and_a_crash_is_one_of_them(suite, mode):
    suite.pytester.makepyfile(MANY)
    result = suite.run("--t2n-report=site", mode=mode)
    result.assert_outcomes(passed=6, failed=16)
    expected = {f"test_model[{model}-tract-{v}]": word for model, word in WORDS.items() for v in VERSIONS}
    expected |= {f"test_model[pass-tract-{v}]": "pass" for v in VERSIONS}
    expected |= {f"test_model[crash@0.22.4-tract-{v}]": "crash" if v == "0.22.4" else "pass" for v in VERSIONS}
    assert suite.statuses == expected
    crash = suite.cells["test_model[crash@0.22.4-tract-0.22.4]"]
    assert crash["error"]["message"] == "thread panicked at core/src/axis.rs:71:9: bad axis -1"
    assert (crash["stage"], crash["case"]) == (
        "optimise",
        suite.cells[f"test_model[crash@0.22.4-tract-{RECENT}]"]["case"],
    )
    result.stdout.fnmatch_lines(
        [
            "*t2n parity*",
            "engine * pass *mismatch *unsupported *error *crash *timeout *oom *levels reached",
            "tract 0.22.4 * 1 * 1 * 1 * 1 * 1 * 1 * 1 * exact 1",
            f"report: {suite.path}/site/index.html",
        ]
    )


def test_engines_are_resolved_once_and_an_export_is_shared(suite, mode):
    suite.pytester.makepyfile(MANY)
    suite.run(mode=mode)
    assert [line for line in suite.log if "resolve" in line] == ["main resolve 0.21,0.22,0.23"]
    captures = [line.split()[2] for line in suite.log if " capture " in line]
    assert sorted(captures) == sorted(["pass", "crash@0.22.4", *WORDS])
    if mode == "n2":
        workers = {line.split()[0] for line in suite.log if "export" in line}
        assert workers == {"gw0", "gw1"}


def test_the_failure_says_stage_op_module_source_and_hint(suite):
    suite.pytester.makepyfile(MANY)
    result = suite.run("-k", f"unsupported and {RECENT}")
    result.stdout.fnmatch_lines(
        [
            f"unsupported at stage `lower` in tract {RECENT}: 1 operator of this model cannot be exported:",
            "- not supported",
            "*origin: aten::fft_fft in module `encoder.front` at model.py:12 in forward",
            "*hint: use a filter bank",
            f"FAILED *test_model[[]unsupported-tract-{RECENT}[]]*",
        ]
    )
    assert result.stdout.str().count("aten::fft_fft") == 1, "said once"
    assert "pytest_t2n" not in result.stdout.str().replace("plugins:", "")


def test_the_failure_shows_the_comparison(suite):
    suite.pytester.makepyfile(MANY)
    result = suite.run("-k", f"mismatch and {RECENT}", "--t2n-level=very")
    result.stdout.fnmatch_lines(
        [
            f"mismatch at stage `compare` in tract {RECENT}: 1 of 1 outputs differ from PyTorch beyond `very`: y",
            "output  shape *required *outside *max abs *mean abs *max rel *max ulp *sqnr *worst at *expected *actual",
            "y *float32[[]*,3[]]  none *very *1 *",
            "sizes checked: T=5; T=1; T=7",
            "failed at: T=5; T=1; T=7",
        ]
    )


def test_the_failure_of_a_crash_shows_the_panic(suite):
    suite.pytester.makepyfile(MANY)
    result = suite.run("-k", "crash and 0.22.4")
    result.stdout.fnmatch_lines(
        [
            "crash at stage `optimise` in tract 0.22.4: thread panicked at core/src/axis.rs:71:9: bad axis -1",
            "stack of the engine",
        ]
    )


def test_a_bug_of_the_converter_shows_where_it_is(suite):
    suite.pytester.makepyfile(MANY)
    result = suite.run("-k", f"bug and {RECENT}")
    result.stdout.fnmatch_lines(
        [f"error at stage `lower` in tract {RECENT}: 'bug of the converter'", "*conftest.py*in to"]
    )


def test_the_users_own_exception_is_a_normal_failure(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        def test_it():
            try:
                raise ValueError("cause")
            except ValueError as cause:
                raise RuntimeError("mine") from cause
        """
    )
    result = suite.run("--t2n-report=site", engines="0.23")
    result.stdout.fnmatch_lines(
        ["E *ValueError: cause", "*direct cause*", ">*raise RuntimeError(*", "E *RuntimeError: mine"]
    )
    assert "running.py" not in result.stdout.str()
    cell = suite.cells[f"test_it[tract-{RECENT}]"]
    assert (cell["status"], cell["stage"], cell["error"]["error_class"]) == ("error", "setup", "RuntimeError")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("pass", "this test returned nothing: a test marked nnef_export returns (model, inputs)"),
        ("return 'pass'", "this test returned a str: "),
        ("return 'pass', 1, 2", "this test returned a tuple of 3: "),
        ("return 'pass', None", "the inputs of this test are nothing: "),
    ],
)
def test_a_wrong_return_value_says_what_to_return(suite, body, words):
    suite.pytester.makepyfile(f"import pytest\n@pytest.mark.nnef_export\ndef test_it():\n    {body}")
    result = suite.run("--t2n-report=site", engines="0.23")
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()
    assert suite.statuses == {f"test_it[tract-{RECENT}]": "error"}


def test_skips_xfails_and_broken_fixtures(suite, mode):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def broken():
            raise OSError("no weights")

        @pytest.mark.nnef_export
        def test_broken(broken):
            return "pass", (1,)

        @pytest.mark.nnef_export
        @pytest.mark.skip(reason="not today")
        def test_mark():
            return "pass", (1,)

        @pytest.mark.nnef_export
        def test_inside():
            pytest.skip("not here")

        @pytest.mark.nnef_export
        @pytest.mark.xfail(reason="upstream 7", strict=True)
        def test_known():
            return "mismatch", (1,)

        @pytest.mark.nnef_export
        @pytest.mark.xfail(strict=True)
        def test_mended():
            return "pass", (1,)
        """
    )
    result = suite.run("--t2n-report=site", engines="0.23", mode=mode)
    result.assert_outcomes(errors=1, skipped=2, xfailed=1, failed=1)
    cells = {name.partition("[")[0]: cell for name, cell in suite.cells.items()}
    assert {name: cell["status"] for name, cell in cells.items()} == {
        "test_broken": "error",
        "test_mark": "skip",
        "test_inside": "skip",
        "test_known": "mismatch",
        "test_mended": "pass",
    }
    assert cells["test_broken"]["error"]["message"] == "no weights"
    assert cells["test_mark"]["error"]["message"] == "not today"
    assert cells["test_known"]["expected"] == "xfail: upstream 7"


BY_HAND = """
    import pytest
    from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
    from t2n_core.errors import ParityError, UnsupportedOpsError

    def test_pass(nnef_export):
        result = nnef_export("pass", (1,), custom_extensions=["a"])
        assert result.archive.read_bytes() == b"archive"
        assert result.times == {"capture": 0.25}
        assert result.assert_parity("close").level == "exact"

    @pytest.mark.nnef_export(tolerance="super")
    def test_marked(nnef_export):
        assert nnef_export("pass", (1,)).check_parity().required == "super"

    def test_wrong_numbers(nnef_export):
        nnef_export("mismatch", (1,)).assert_parity()

    def test_unsupported(nnef_export):
        nnef_export("unsupported", (1,))

    def test_expects_it(nnef_export):
        with pytest.raises(UnsupportedOpsError):
            nnef_export("unsupported", (1,))

    def test_two(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        assert not nnef_export("crash", (1,)).check_parity(expected="too old").passed

    def test_later(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        assert 1 == 2

    def test_noted(nnef_export):
        result = nnef_export("pass", (1,))
        outcome = Outcome(Status.OOM, Stage.RUN, error=ErrorInfo("EngineOutOfMemory", "by another check"))
        result.note(outcome, expected="a small machine")

    def test_option(nnef_export):
        nnef_export("pass", (1,), tolerence="close")
"""


def test_the_fixture_by_hand(suite, mode):
    suite.pytester.makepyfile(BY_HAND)
    result = suite.run("--t2n-report=site", engines="0.23", mode=mode)
    result.assert_outcomes(passed=5, failed=4)
    cells = {name.partition("[")[0].removeprefix("test_"): cell for name, cell in suite.cells.items()}
    assert {name: (cell["status"], cell["stage"]) for name, cell in cells.items()} == {
        "pass": ("pass", "compare"),
        "marked": ("pass", "compare"),
        "wrong_numbers": ("mismatch", "compare"),
        "unsupported": ("unsupported", "lower"),
        "expects_it": ("unsupported", "lower"),
        "two": ("crash", "optimise"),
        "later": ("error", "compare"),
        "noted": ("oom", "run"),
        "option": ("error", "setup"),
    }
    assert cells["expects_it"]["expected"] == "the test expects it: pytest.raises"
    assert cells["two"]["expected"] == "the test expects it: too old"
    assert cells["noted"]["expected"] == "the test expects it: a small machine"
    assert cells["pass"]["required"] == "close"
    text = result.stdout.str()
    assert "E       t2n_core.errors.ParityError: mismatch at stage `compare`" in text
    assert "did you mean `tolerance`" in text
    assert "running.py" not in text, "our frames are hidden"


def test_archives_are_removed(suite, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    suite.pytester.makepyfile(MANY + BY_HAND)
    suite.run()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("t2n-")] == []


def test_other_reporters_get_no_property_of_ours(suite, mode):
    suite.pytester.makepyfile(MANY)
    suite.run("--junitxml=junit.xml", mode=mode)
    text = (suite.path / "junit.xml").read_text()
    assert "testcase" in text
    assert "<property" not in text


def test_records_follow_the_schema_between_run_and_plan_and_the_end(suite):
    from pytest_t2n.records.file import encode, read_records
    from pytest_t2n.records.schema import CellLine, EndLine, PlanLine, RunLine, cells_of

    suite.pytester.makepyfile(MANY)
    suite.run("--t2n-report=site", engines="0.21,0.23")
    path = suite.path / "site" / "matrix.jsonl"
    records = read_records(path)
    assert isinstance(records[0], RunLine)
    assert [engine.title for engine in records[0].engines] == ["tract 0.21.19", f"tract {RECENT}"]
    assert isinstance(records[1], PlanLine)
    assert {engine: len(nodeids) for engine, nodeids in records[1].cells.items()} == {
        "tract-0.21.19": 7,
        f"tract-{RECENT}": 7,
    }
    assert all(isinstance(record, CellLine) for record in records[2:-1])
    assert isinstance(records[-1], EndLine)
    assert len(cells_of(records)) == 14
    assert "\n".join(map(encode, records)) + "\n" == path.read_text()
    assert json.loads(path.read_text().splitlines()[0])["schema"] == 1


def test_options_reach_the_export(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export(target=["tract", "khronos"], custom_extensions=["a"], dynamic_axes={"x": {0: "T"}})
        def test_it():
            return "pass", (1,)
        """
    )
    suite.run("--t2n-khronos", engines="0.23").assert_outcomes(passed=2)
    exports = [line for line in suite.log if "export" in line]
    assert exports == [f"main export pass {RECENT} ['custom_extensions']", "main export pass 1.0.5 []"]
    assert sum("capture" in line for line in suite.log) == 2, "a khronos graph has no symbols"


def test_the_terminal_shows_the_matrix_of_suites_and_engines(suite):
    template = marked("[{whats}]")
    suite.pytester.makepyfile(
        test_layers=template.format(whats="'pass', 'mismatch'"),
        test_recurrent=template.format(whats=f"'pass', 'crash@{RECENT}'"),
    )
    result = suite.run(engines="0.21,0.23")
    result.stdout.fnmatch_lines(
        [
            f"suite      tract 0.21.19  tract {RECENT}",
            "layers               1/2           1/2",
            "recurrent            2/2           1/2",
        ]
    )


def test_a_test_says_itself_what_it_is_about(suite, mode):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("op", ["relu", "crash@0.22.4"])
        def test_op(op, nnef_export, record_property):
            record_property("t2n_op", op)
            record_property("t2n_dtype", "float16")
            nnef_export("pass" if op == "relu" else op, (1,)).assert_parity()
        """
    )
    suite.run("--t2n-report=site", mode=mode)
    assert len(suite.cells) == 6
    assert {cell["op"] for name, cell in suite.cells.items() if "relu" in name} == {"relu"}
    assert {cell["dtype"] for cell in suite.cells.values()} == {"float16"}


def test_changes_since_a_baseline(suite):
    model = "import pytest\n@pytest.mark.nnef_export\ndef test_it(): return {!r}, (1,)"
    suite.pytester.makepyfile(test_it=model.format("pass"))
    suite.run("--t2n-report=site", engines="0.22,0.23").assert_outcomes(passed=2)
    suite.pytester.makepyfile(test_it=model.format(f"crash@{RECENT}"))
    result = suite.run("--t2n-report=site", "--t2n-baseline=site", engines="0.22,0.23")
    result.stdout.fnmatch_lines(["since the baseline: 1 regression"])
    summary = (suite.path / "site" / "summary.md").read_text()
    assert f"| regression | test\\_it.py::test\\_it | tract {RECENT} | pass exact | crash at optimise |" in summary
    result = suite.run("--t2n-report=site", "--t2n-baseline=nowhere.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-baseline: *nowhere.jsonl*"])


def test_paths_of_the_machine_are_not_in_the_records(suite):
    suite.pytester.makepyfile(
        """
        import pathlib
        import pytest

        @pytest.mark.nnef_export
        def test_it(nnef_export):
            raise ValueError(f"in {pathlib.Path(__file__)}")
        """
    )
    suite.run("--t2n-report=site", engines="0.23")
    (cell,) = suite.cells.values()
    assert cell["error"]["message"] == "in test_paths_of_the_machine_are_not_in_the_records.py"
    assert str(suite.path) not in json.dumps(cell)
