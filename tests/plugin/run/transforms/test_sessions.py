"""Cells that pass are checked after transforms of their engine too, and a failure there fails the test."""

from __future__ import annotations

import pytest

from pytest_t2n.cli import main
from tests.plugin.suites import marked
from tests.releases import RECENT

MODELS = marked('["pass", "untransformable", "untouched", "uncheckable", "mismatch"]')
MARKED = """
    import pytest

    @pytest.mark.nnef_export(transforms=["f32_to_f16", "conv_nhwc"])
    @pytest.mark.parametrize("what", ["pass", "untransformable", "untouched", "uncheckable"])
    def test_model(what):
        return what, (1,)
"""
ENDS = {
    "pass": "pass",
    "untransformable": "mismatch",
    "untouched": "pass",
    "uncheckable": "pass",
    "mismatch": "mismatch",
}
ARGUMENTS = '{"name": "f32_to_f16", "exclude": ["a,b"]}'


def checked(suite, what: str, version: str = RECENT) -> dict[str, str]:
    return suite.cells[f"test_model[{what}-tract-{version}]"].get("facts", {}).get("checked_transforms", {})


def test_the_option_checks_each_cell_that_passes(suite, mode):
    suite.pytester.makepyfile(test_it=MODELS)
    result = suite.run("--t2n-transforms=f32_to_f16,conv_nhwc", "--t2n-report=site", engines="0.22,0.23", mode=mode)
    result.assert_outcomes(passed=6, failed=4)
    assert "after the transform `f32_to_f16`: " in result.stdout.str()
    assert checked(suite, "pass") == {"f32_to_f16": "pass at exact", "conv_nhwc": "pass at exact"}
    assert checked(suite, "pass", "0.22.4")["conv_nhwc"].startswith("not checked: tract 0.22.4 has no transform")
    assert list(checked(suite, "untransformable")) == ["f32_to_f16"], "the first failure ends it"
    assert checked(suite, "untransformable")["f32_to_f16"].startswith("mismatch")
    assert checked(suite, "untouched")["f32_to_f16"].startswith("weak at exact: the transform left")
    assert checked(suite, "uncheckable")["f32_to_f16"] == "not checked: error: caches begin empty"
    assert checked(suite, "mismatch") == {}, "it failed before"
    statuses = {model: suite.statuses[f"test_model[{model}-tract-{RECENT}]"] for model in ENDS}
    assert statuses == ENDS


def test_the_marker_does_the_same_for_one_test(suite):
    suite.pytester.makepyfile(test_it=MARKED)
    result = suite.run("--t2n-report=site", engines="0.23")
    result.assert_outcomes(passed=2, failed=2)
    assert list(suite.statuses.values()) == ["pass", "mismatch", "weak", "error"]
    error = suite.cells[f"test_model[untouched-tract-{RECENT}]"]["error"]
    assert error["message"] == "the transform left the model as it was"
    suite.run("--t2n-strict", engines="0.23").assert_outcomes(passed=1, failed=3)


def test_marker_and_option_run_each_once(suite):
    suite.pytester.makepyfile(test_it=MARKED)
    suite.run("--t2n-transforms=round_trip,f32-to-f16", "-k", "pass", engines="0.23")
    assert suite.runs == [
        f"pass {RECENT}",
        f"pass {RECENT} f32_to_f16",
        f"pass {RECENT} conv_nhwc",
        f"pass {RECENT} round_trip",
    ]


def test_parts_of_other_transforms_do_not_merge(suite, capsys):
    suite.pytester.makepyfile(test_it=MODELS)
    for part, transform in ((1, "f32_to_f16"), (2, "round_trip")):
        arguments = (f"--t2n-shard={part}/2", f"--t2n-transforms={transform}", f"--t2n-report=part{part}")
        suite.run(*arguments, engines="0.23")
    parts = [str(suite.path / f"part{part}") for part in (1, 2)]
    assert main(["matrix", "merge", *parts, "-o", str(suite.path / "merged")]) != 0
    assert "these runs had different transforms (--t2n-transforms)" in capsys.readouterr().err


def test_the_ini_file_and_arguments(suite):
    suite.pytester.makepyfile(test_it=MODELS)
    suite.pytester.makeini(f"[pytest]\nt2n_transforms = round_trip, {ARGUMENTS}")
    suite.run("-k", "pass", engines="0.23")
    assert suite.runs == [f"pass {RECENT}", f"pass {RECENT} round_trip", f"pass {RECENT} {ARGUMENTS}"]


def test_the_fixture_checks_too(suite):
    suite.pytester.makepyfile(
        test_it="""
        def test_model(nnef_export):
            nnef_export("untransformable", (1,), transforms=["round_trip"]).assert_parity()
        """
    )
    result = suite.run(engines="0.23")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*after the transform `round_trip`*"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nonsense", "tract has no transform 'nonsense'"),
        ("conv_nhwc", "tract 0.22.4 has no transform conv_nhwc (it has round_trip, f32_to_f16"),
        ("pulse", "the transform pulse cannot be checked"),
        ("{}", "is not a transform"),
    ],
)
def test_a_name_that_no_engine_has_is_a_usage_error(suite, given, words):
    suite.pytester.makepyfile(test_it=MODELS)
    result = suite.run(f"--t2n-transforms={given}", engines="0.21,0.22")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --t2n-transforms: *{words.replace('[', '[[]')}*"])
    assert not suite.runs


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ('nnef_export(transforms=["nonsense"])', "transforms: tract has no transform 'nonsense'"),
        ("nnef_export(transforms=7)", "transforms: 7 is neither a name nor a list of names"),
        ('nnef_export(transforms="pulse")', "transforms: the transform pulse cannot be checked"),
        ('nnef_generate(transforms=["round_trip"])', "`transforms` is not an argument of nnef_generate"),
    ],
)
def test_a_wrong_marker_fails_its_test(suite, marker, words):
    suite.pytester.makepyfile(
        test_it=f"""
        import pytest

        @pytest.mark.{marker}
        def test_model():
            return "pass", (1,)
        """
    )
    result = suite.run(engines="0.23")
    assert words in result.stdout.str()
    assert result.ret != 0
