"""Every way to leave a wrong model unproven fails.

These are an outcome that is thrown away, an export that is not checked, a returned model beside the fixture, a model
per engine, a skip after a failure.
"""

from __future__ import annotations

from tests.releases import RECENT

FORMS = f"""
    import pytest

    @pytest.fixture
    def other(nnef_export):
        nnef_export("pass", (1,)).assert_parity()

    @pytest.fixture
    def checked(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        return "something"

    @pytest.mark.nnef_export
    def test_returned_beside_a_fixture_that_exports(other):
        return "mismatch", (1,)

    def test_nothing_returned_beside_a_fixture_that_checks(checked):
        assert checked

    def test_outcome_thrown_away(nnef_export):
        nnef_export("mismatch", (1,)).check_parity()

    def test_outcome_kept_and_not_read(nnef_export):
        outcome = nnef_export("mismatch", (1,)).check_parity()
        assert outcome

    def test_outcome_read(nnef_export):
        outcome = nnef_export("mismatch", (1,)).check_parity()
        assert not outcome.passed

    def test_outcome_expected(nnef_export):
        outcome = nnef_export("mismatch", (1,)).check_parity(expected="tract rounds")
        assert not outcome.passed
        assert "mismatch" in str(outcome)

    def test_error_awaited(nnef_export):
        from t2n_core.errors import ParityError
        with pytest.raises(ParityError):
            nnef_export("mismatch", (1,)).assert_parity()

    def test_outcome_of_its_own(nnef_export):
        nnef_export("mismatch", (1,)).check_parity(note=False)
        nnef_export("pass", (1,)).assert_parity()

    def test_outcome_judged_by_another(nnef_export):
        result = nnef_export("mismatch", (1,))
        result.check_parity(note=False)
        result.note(nnef_export("pass", (1,)).check_parity(note=False))

    def test_second_export_unchecked(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        nnef_export("mismatch", (1,))

    def test_second_export_about_itself(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        nnef_export("mismatch", (1,), check=False)

    def test_skip_after_a_failure(nnef_export):
        outcome = nnef_export("mismatch", (1,)).check_parity()
        if not outcome.passed:
            pytest.skip("not today")

    def test_skip_after_a_pass(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        pytest.skip("not today")

    @pytest.fixture
    def by_engine(t2n_engine):
        return "mismatch" if t2n_engine.version == "{RECENT}" else "pass"

    @pytest.mark.nnef_export
    def test_model_of_engine(by_engine):
        return by_engine, (1,)
"""
WANTED = {
    "test_returned_beside_a_fixture_that_exports": "failed",
    "test_nothing_returned_beside_a_fixture_that_checks": "passed",
    "test_outcome_thrown_away": "failed",
    "test_outcome_kept_and_not_read": "failed",
    "test_outcome_read": "failed",
    "test_outcome_expected": "passed",
    "test_error_awaited": "passed",
    "test_outcome_of_its_own": "failed",
    "test_outcome_judged_by_another": "passed",
    "test_second_export_unchecked": "failed",
    "test_second_export_about_itself": "passed",
    "test_skip_after_a_failure": "failed",
    "test_skip_after_a_pass": "skipped",
}
OF_REPORTS = """
import collections

def pytest_runtest_logreport(report):
    if report.when == "call" or report.failed or report.skipped and report.when == "setup":
        with open("reports.txt", "a") as file:
            print(report.nodeid.partition("::")[2], report.outcome, file=file)
"""


def test_every_form_is_proven_or_fails(suite):
    suite.pytester.makepyfile(FORMS, reporting=OF_REPORTS)
    suite.pytester.syspathinsert()
    suite.run("-p", "reporting", "--t2n-report=site", engines="0.21,0.23")
    outcomes = dict(line.split() for line in (suite.path / "reports.txt").read_text().splitlines())
    of_engine = {name: outcomes.pop(f"test_model_of_engine[tract-{name}]") for name in ("0.21.19", RECENT)}
    assert of_engine == {"0.21.19": "passed", RECENT: "failed"}
    expected = {
        f"{name}[tract-{version}]": outcome for name, outcome in WANTED.items() for version in ("0.21.19", RECENT)
    }
    assert outcomes == expected


def test_the_record_of_an_unchecked_export_says_how_many(suite):
    suite.pytester.makepyfile(FORMS)
    suite.run("--t2n-report=site", "-k", "second_export_unchecked", engines="0.23").assert_outcomes(failed=1)
    (cell,) = suite.cells.values()
    assert (cell["status"], cell["stage"]) == ("error", "compare")
    assert cell["error"]["message"] == "this test did not check 1 of the 2 models that it exported"


def test_a_model_that_skips_its_test_fails(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        class Skips:
            def partition(self, _):
                pytest.skip("an optional kernel is missing")

        @pytest.mark.nnef_export
        def test_model():
            return Skips(), (1,)
        """
    )
    result = suite.run(engines="0.23")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the model calls pytest.skip while it is exported or checked: an optional kernel*"])


UNMARKED = """
    import pytest
    from torch import nn

    def test_without_a_marker():
        return nn.Module(), (1,)

    @pytest.mark.nnef_exprot
    def test_with_a_misspelt_marker():
        return [nn.Module(), {"x": 1}]

    class TestMethods:
        def test_method(self):
            return nn.Module(), 1

    def test_beside_the_fixture(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        return nn.Module(), 1

    async def test_async():
        return nn.Module(), 1

    def test_other():
        return 5, 6

    def test_nothing():
        pass
"""


def test_a_returned_model_that_nothing_checks_fails(suite):
    suite.pytester.mkpydir("torch").joinpath("nn.py").write_text("class Module:\n    pass\n")
    suite.pytester.makepyfile(UNMARKED)
    plain = ("-W", "ignore", "-p", "no:asyncio", "-p", "no:anyio")
    result = suite.run(*plain, engines="0.23", alone=True)
    assert {name: result.parseoutcomes().get(name, 0) for name in ("passed", "failed")} in (
        {"passed": 2, "failed": 5},  # pytest 8.4 and later fail async functions; before, they are skipped
        {"passed": 2, "failed": 4},
    )
    result.stdout.fnmatch_lines(["*this test returns a model and its inputs, and nothing checks them: mark it with*"])
    result.stdout.fnmatch_lines(["*this test takes the fixture `nnef_export` and also returns a model*"])
    unchecked = suite.run(*plain, engines="", alone=True)  # nothing is proven there, which the summary says
    assert unchecked.parseoutcomes().get("failed", 0) <= 1


XFAILS = """
    import pytest
    from t2n_core.errors import ParityError

    expected_failure = pytest.mark.xfail
    marked = pytest.mark.nnef_export

    @marked
    @expected_failure
    def test_plain():
        return "mismatch", (1,)

    @marked
    @expected_failure
    def test_plain_that_passes():
        return "pass", (1,)

    @marked
    @expected_failure(strict=True)
    def test_strict_that_passes():
        return "pass", (1,)

    @marked
    @expected_failure(strict=True)
    def test_strict_that_is_weak():
        return "weak", (1,)

    @marked
    @expected_failure(False, reason="does not hold")
    def test_condition():
        return "mismatch", (1,)

    @marked
    @expected_failure(raises=ValueError)
    def test_of_another_error():
        return "mismatch", (1,)

    @expected_failure(raises=ParityError)
    def test_of_this_error(nnef_export):
        nnef_export("mismatch", (1,)).assert_parity()

    @marked
    @expected_failure(run=False, reason="hangs")
    def test_not_run():
        return "mismatch", (1,)

    @marked
    def test_inside():
        pytest.xfail("later")

    def test_inside_after_a_check(nnef_export):
        nnef_export("mismatch", (1,)).check_parity()
        pytest.xfail("known")

    @marked
    @pytest.mark.parametrize("model", [pytest.param("mismatch", marks=expected_failure), "pass"])
    def test_parameter(model):
        return model, (1,)

    def test_applied(request, nnef_export):
        request.applymarker(expected_failure)
        nnef_export("mismatch", (1,)).assert_parity()

    @expected_failure
    def test_unchecked(nnef_export):
        nnef_export("mismatch", (1,))
"""
OF_XFAILS = {
    "test_plain": "mismatch",
    "test_plain_that_passes": "pass",
    "test_strict_that_passes": "pass",
    "test_strict_that_is_weak": "weak",
    "test_condition": "mismatch",
    "test_of_another_error": "mismatch",
    "test_of_this_error": "mismatch",
    "test_not_run": "skip",
    "test_inside": "error",
    "test_inside_after_a_check": "mismatch",
    "test_parameter[mismatch-": "mismatch",
    "test_parameter[pass-": "pass",
    "test_applied": "mismatch",
    "test_unchecked": "error",
}


def test_records_keep_what_each_form_of_xfail_expects(suite):
    suite.pytester.makepyfile(XFAILS)
    result = suite.run("--t2n-report=site", engines="0.23")
    result.assert_outcomes(passed=1, failed=4, xfailed=8, xpassed=1)
    cells = {name.removesuffix(f"tract-{RECENT}]").removesuffix("["): cell for name, cell in suite.cells.items()}
    assert {name: cell["status"] for name, cell in cells.items()} == OF_XFAILS
    expected = {name for name, cell in cells.items() if cell.get("expected", "").startswith("xfail")}
    assert expected == {*OF_XFAILS} - {
        "test_strict_that_passes", "test_strict_that_is_weak", "test_condition", "test_of_another_error",
        "test_parameter[pass-",
    }  # fmt: skip


NO_MODELS = """
    import pytest

    marked = pytest.mark.nnef_export

    async def coroutine():
        return "pass", (1,)

    @marked
    def test_coroutine():
        return coroutine()

    @marked
    async def test_async():
        return "pass", (1,)

    @marked
    def test_generator():
        return (part for part in ("pass", (1,)))

    @marked
    def test_exit():
        raise SystemExit(0)

    def test_exit_before_a_check(nnef_export):
        nnef_export("pass", (1,))
        raise SystemExit(0)

    class TestMethods:
        @marked
        def test_nothing(self):
            return None
"""


def test_what_is_no_model_and_inputs_fails(suite):
    suite.pytester.makepyfile(NO_MODELS)
    result = suite.run("--t2n-report=site", "-W", "ignore", engines="0.23")
    result.assert_outcomes(failed=6)
    assert list(suite.statuses.values()) == ["error"] * 6


def test_a_generator_function_is_collected_as_no_test(suite):
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\ndef test_it():\n    yield 'pass', (1,)")
    assert suite.run("--t2n-report=site", engines="0.23").ret != 0
