"""Which tests there are, what they are called, and the messages of a wrong marker."""

from __future__ import annotations

import sys

import pytest

from tests.plugin.conftest import OTHER_PLUGINS
from tests.releases import RECENT

ENCODER = """
    import pytest

    @pytest.mark.nnef_export(target="tract")
    @pytest.mark.parametrize("bidirectional", [False, True])
    def test_encoder(bidirectional):
        return "pass", (1,)

    @pytest.mark.nnef_export()
    def test_plain():
        return "pass", (1,)

    @pytest.mark.nnef_export("khronos")
    def test_flat():
        return "pass", (1,)

    @pytest.mark.nnef_export(target=["tract", "khronos"], versions=">=0.22,<0.23")
    def test_both():
        return "pass", (1,)

    def test_by_hand(nnef_export):
        nnef_export("pass", (1,)).assert_parity()

    def test_other():
        pass
"""


def collected(suite, *arguments, **more):
    result = suite.run("--collect-only", "-q", *arguments, **more)
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


@pytest.mark.parametrize(
    ("arguments", "tests"),
    [
        (["[False]"], ["test_encoder[False-tract-0.21.19]", f"test_encoder[False-tract-{RECENT}]"]),
        ([f"[False-tract-{RECENT}]"], [f"test_encoder[False-tract-{RECENT}]"]),
        (["[True-tract-0.21]"], ["test_encoder[True-tract-0.21.19]"]),
        (
            ["[False]", f"[True-tract-{RECENT}]"],
            ["[False-tract-0.21.19]", f"[False-tract-{RECENT}]", f"[True-tract-{RECENT}]"],
        ),
        ([""], ["[False-tract-0.21.19]", f"[False-tract-{RECENT}]", "[True-tract-0.21.19]", f"[True-tract-{RECENT}]"]),
    ],
)
def test_an_argument_names_a_case_or_one_of_its_cells(suite, arguments, tests):
    suite.pytester.makepyfile(test_it=ENCODER)
    node_ids = [f"test_it.py::test_encoder{argument}" for argument in arguments]
    expected = [f"test_encoder{test}" if test.startswith("[") else test for test in tests]
    assert collected(suite, *node_ids, engines="0.21,0.23") == expected
    absolute_path = suite.pytester.path / "test_it.py"
    assert collected(suite, f"{absolute_path}::test_encoder{arguments[0]}", engines="0.21,0.23")[0] == expected[0]


def test_an_argument_that_names_no_case_is_not_found(suite):
    suite.pytester.makepyfile(test_it=ENCODER)
    result = suite.run("test_it.py::test_encoder[Maybe]", "test_it.py::test_plain", engines="0.21")
    result.stderr.fnmatch_lines(["ERROR: not found: test_it.py::test_encoder?Maybe?"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_case_beside_the_whole_file_leaves_nothing_out(suite):
    suite.pytester.makepyfile(test_it=ENCODER)
    assert "test_other" in collected(suite, "test_it.py::test_encoder[False]", "test_it.py", engines="0.21")
    suite.pytester.makepyfile(
        test_more="import pytest\n@pytest.mark.parametrize('a', ['x[y]', 'z'])\ndef test_a(a): pass"
    )
    assert collected(suite, "test_more.py::test_a[x[y]]", engines="0.21") == ["test_a[x[y]]"]


def test_ids(suite):
    suite.pytester.makepyfile(ENCODER)
    assert collected(suite, "--t2n-khronos", engines="0.21,0.23") == [
        "test_encoder[False-tract-0.21.19]",
        f"test_encoder[False-tract-{RECENT}]",
        "test_encoder[True-tract-0.21.19]",
        f"test_encoder[True-tract-{RECENT}]",
        "test_plain[tract-0.21.19]",
        f"test_plain[tract-{RECENT}]",
        "test_flat[khronos]",
        "test_both[khronos]",
        "test_by_hand[tract-0.21.19]",
        f"test_by_hand[tract-{RECENT}]",
        "test_other",
    ]


def test_the_engine_is_last_behind_fixtures_conftests_and_classes(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        def pytest_generate_tests(metafunc):
            if "extra" in metafunc.fixturenames:
                metafunc.parametrize("extra", ["e"])

        @pytest.fixture(params=["f"])
        def given(request):
            return request.param

        @pytest.mark.nnef_export
        class TestNet:
            @pytest.mark.parametrize("size", [3])
            def test_it(self, size, given, extra):
                return "pass", (1,)
        """
    )
    (name,) = collected(suite, engines="0.23")
    assert name.startswith("TestNet::test_it[")
    assert name.endswith(f"-tract-{RECENT}]")
    suite.run("--t2n-report=site", engines="0.23").assert_outcomes(passed=1)
    (cell,) = suite.cells.values()
    assert cell["case"].endswith("test_it" + name[len("TestNet::test_it") :].replace(f"-tract-{RECENT}", ""))


def test_specs_add_up_once_and_ascend(suite):
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\ndef test_it(): return 'pass', (1,)")
    assert collected(suite, "--t2n-tract=0.21.19", "--t2n-tract=0.21.13", engines="0.23,0.21") == [
        "test_it[tract-0.21.13]",
        "test_it[tract-0.21.19]",
        f"test_it[tract-{RECENT}]",
    ]


def test_k_selects_one_version(suite):
    suite.pytester.makepyfile(ENCODER)
    result = suite.run("-k", "0.21.19 and encoder", "--t2n-report=site")
    result.assert_outcomes(passed=2, deselected=13)
    assert set(suite.statuses) == {"test_encoder[False-tract-0.21.19]", "test_encoder[True-tract-0.21.19]"}


def test_collecting_writes_nothing_and_loads_neither_torch_nor_numpy(suite):
    suite.pytester.makeconftest(
        """
        import sys
        from pathlib import Path

        import pytest_t2n.config.engines
        from t2n_core.engine.provision.resolved import ResolvedEngine

        def resolve(spec, **options):
            return [ResolvedEngine("wheel", spec, Path("/none"), "", spec)]

        pytest_t2n.config.engines.load_resolver = lambda: resolve

        def pytest_unconfigure(config):
            print("LOADED", sorted({"torch", "numpy", "t2n_core.export.model"} & set(sys.modules)))
        """
    )
    suite.pytester.makepyfile(ENCODER)
    arguments = ("--collect-only", "-q", "--t2n-report=site", "--t2n-tract=0.21.19", *OTHER_PLUGINS)
    result = suite.pytester.runpytest_subprocess(*arguments)  # a fresh Python, since forks have numpy
    result.stdout.fnmatch_lines(["*test_encoder[[]True-tract-0.21.19[]]", "*LOADED [[][]]*"])
    assert result.ret == 0
    assert not (suite.path / "site").exists()


def test_help_and_an_unmarked_suite_load_nothing_and_resolve_nothing(suite):
    code = """
        import sys
        import pytest

        status = pytest.main(sys.argv[1:])
        resolution = "t2n_core.engine.provision.resolution"
        costly = {"torch", "numpy", "jinja2", "msgspec", "t2n_core.export.model", resolution}
        print("LOADED", sorted(costly & set(sys.modules)), "STATUS", int(status))
    """
    (suite.path / "conftest.py").unlink()
    suite.pytester.makepyfile(test_it="def test_it(): pass")
    script = suite.pytester.makepyfile(script=code)
    for arguments in (["--help"], ["--markers"], ["-q", "test_it.py"]):
        result = suite.pytester.run(
            sys.executable, script, "-p", "no:benchmark", "-p", "no:hypothesispytest", *arguments
        )
        result.stdout.fnmatch_lines(["LOADED [[][]] STATUS 0"])
    assert suite.log == []


@pytest.mark.parametrize(
    ("arguments", "plugin", "core"),
    [
        (["--help"], "", ""),
        (["-q", "test_plain.py"], "collect.collection collect.registrations", ""),
        (
            ["--collect-only", "-q", "test_marked.py"],
            """
            collect.cells collect.collection collect.generating collect.judging collect.markers
            collect.registrations collect.rewriters collect.targets
            config.engines records records.cell records.nodeids
            """,
            # a marker of this suite has versions
            """
            engine engine.provision engine.provision.versions export export.options
            text torch_graph torch_graph.choices
            """,
        ),
    ],
    ids=["help", "a plain suite", "collection of a marked suite"],
)
def test_a_session_without_engines_loads_what_it_needs_and_no_more(suite, arguments, plugin, core):
    code = """
        import sys
        import pytest

        pytest.main(sys.argv[1:])
        print("LOADED", sorted(name for name in sys.modules if name.startswith(("pytest_t2n", "t2n_core"))))
    """
    (suite.path / "conftest.py").unlink()
    suite.pytester.makepyfile(test_plain="def test_it(): pass", test_marked=ENCODER)
    script = suite.pytester.makepyfile(script=code)
    result = suite.pytester.run(sys.executable, script, "-p", "no:benchmark", "-p", "no:hypothesispytest", *arguments)
    ours = ["", *f"collect collect.names config config.hookspec config.options config.settings plugin {plugin}".split()]
    theirs = ["", *f"errors level {core}".split()]
    names = [f"pytest_t2n.{name}".rstrip(".") for name in ours] + [f"t2n_core.{name}".rstrip(".") for name in theirs]
    assert f"LOADED {sorted(names)}" in result.outlines


def test_help_names_the_options_and_markers_the_arguments(suite):
    suite.run("--help", engines="").stdout.fnmatch_lines(
        ["*--t2n-tract=SPEC*", "*--t2n-report=DIR*", "*t2n_tract (linelist)*"]
    )
    suite.run("--markers", engines="").stdout.fnmatch_lines(
        ["@pytest.mark.nnef_export(target=*dynamic_axes*tolerance*"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("tract='0.23'", '`tract` is not an argument of nnef_export*versions="0.23" narrows'),
        ("tolerence='close'", "unknown argument `tolerence`*did you mean `tolerance`"),
        ("tolerance='closer'", "'closer' is not a tolerance level*did you mean `close`"),
        ("target='tracts'", "unknown target 'tracts'*did you mean `tract`"),
        ("target=3", "target=3 is not a target; write tract, khronos, a subclass of InferenceTarget"),
        ("'tract', 'khronos'", "takes one positional argument"),
        ("'tract', target='tract'", "got its target twice"),
        ("versions='newest'", "versions='newest' is not a version spec"),
        ("versions=''", "is not a version spec"),
        ("dynamic_axes=[1]", "dynamic_axes=*is not a mapping"),
        ("dynamic_axes={'x': 1}", "dynamic_axes: 1, of 'x', is neither a mapping of axes nor a list of them"),
        ("dynamic_axes={'x': {0: 5}}", "dynamic_axes: 5, axis 0 of 'x', is not a name such as *Dim"),
        ("input_names='x'", "input_names='x' is not a list of names"),
        ("inputs=3", "inputs is a list of input sets"),
        ("target='khronos', custom_extensions=[]", "`custom_extensions` belongs to target 'tract'"),
        ("fn_name='two words'", "fn_name='two words' is not the name of a method"),
        ("capture='traced'", "capture='traced' is unknown*did you mean `trace`"),
        ("nnef_variable_naming_scheme='number'", "'number' is unknown*did you mean `numeric`"),
        ("check_io='no'", "check='no' is neither True nor False"),
        ("check_io_tolerance='close', tolerance='close'", "`check_io_tolerance` and `tolerance` are synonyms*"),
        ("version='0.21', versions='0.21'", "`version` and `versions` are synonyms*"),
        ("specific_tract_binary_path='tract'", "*--t2n-tract=path:/to/tract"),
        ("offline=True", "*--t2n-offline"),
    ],
)
@pytest.mark.parametrize("engines", ["0.23", ""])
def test_wrong_marker_arguments_are_errors_of_collection(suite, arguments, words, engines):
    suite.pytester.makepyfile(
        f"import pytest\n@pytest.mark.nnef_export({arguments})\ndef test_it(): return 'pass', (1,)"
    )
    result = suite.pytester.inline_run(*OTHER_PLUGINS, *([f"--t2n-tract={engines}"] if engines else []))
    reports = [report for report in result.getreports("pytest_collectreport") if report.failed]
    assert len(reports) == 1
    assert str(reports[0].longrepr).startswith("test_wrong_marker_arguments_are_errors_of_collection.py::test_it: ")
    pytest.LineMatcher([str(reports[0].longrepr)]).fnmatch_lines([f"*{words}*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_closer_marks_win_argument_by_argument(suite):
    suite.pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.nnef_export(tolerance="ultra", custom_extensions=["a"])

        @pytest.mark.nnef_export(tolerance="exact")
        def test_it():
            return "mismatch", (1,)
        """
    )
    suite.run("--t2n-report=site", engines="0.23")
    assert suite.cells[f"test_it[tract-{RECENT}]"]["required"] == "exact"
    assert suite.log[-1] == f"main export mismatch {RECENT} ['custom_extensions']"


def test_a_mark_of_one_parameter_set_counts_and_its_mistakes_fail_that_test(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export()
        @pytest.mark.parametrize("a", [
            pytest.param(1, marks=pytest.mark.nnef_export(tolerance="exact")),
            pytest.param(2, marks=pytest.mark.nnef_export(tolerence="exact")),
        ])
        def test_it(a):
            return "pass", (1,)
        """
    )
    result = suite.run("--t2n-report=site", engines="0.23")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*unknown argument `tolerence`*"])
    assert suite.cells[f"test_it[1-tract-{RECENT}]"]["required"] == "exact"
    assert suite.statuses[f"test_it[2-tract-{RECENT}]"] == "error"


def test_no_engine_selected(suite, mode):
    suite.pytester.makepyfile(ENCODER)
    result = suite.run("-rs", mode=mode, engines="")
    result.assert_outcomes(passed=1, skipped=6)
    result.stdout.fnmatch_lines(["*no engine selected for tract; select with --t2n-tract=0.21,0.23"])
    result.stdout.fnmatch_lines(["*t2n parity*", "6 tests skipped: no engine selected; select with --t2n-tract=*"])
    assert suite.log == [], "nothing is resolved"


def test_versions_that_leave_nothing_say_so(suite):
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export(versions='0.19')\ndef test_it(): pass")
    result = suite.run("-rs", engines="0.23")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*versions='0.19' of the marker leaves none of the selected tract versions*"])


@pytest.mark.parametrize("where", ["n2", "plain"])
def test_an_unknown_version_is_a_usage_error(suite, where):
    suite.pytester.makepyfile(ENCODER)
    result = suite.run(mode=where, engines="0.77")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --t2n-tract=0.77: no release of tract matches '0.77'", f"*hint: newest is {RECENT}"]
    )
    result.stderr.no_fnmatch_line("*Traceback*")
    assert "test session starts" not in result.stdout.str()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--t2n-level=tight", "*--t2n-level: 'tight' is not a tolerance level*"),
        ("--t2n-timeout=soon", "*--t2n-timeout: 'soon' is not a positive number of seconds*"),
        ("--t2n-timeout=-1", "*--t2n-timeout: '-1' is not a positive*"),
        ("--t2n-report=conftest.py/site", "*--t2n-report=*conftest.py/site: Not a directory*"),
    ],
)
def test_bad_options_are_usage_errors(suite, option, words):
    suite.pytester.makepyfile(ENCODER)
    result = suite.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_strange_count_of_workers_is_one_worker(suite, monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "abc")
    suite.pytester.makepyfile(ENCODER)
    assert suite.run("-p", "no:xdist").ret == pytest.ExitCode.OK


def test_ini_twins_and_the_command_line_before_them(suite):
    suite.pytester.makeini(
        """
        [pytest]
        t2n_tract =
            0.21
            0.22
        t2n_level = ultra
        t2n_report = site
        """
    )
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\ndef test_it(): return 'pass', (1,)")
    suite.run(engines="").assert_outcomes(passed=2)
    assert {cell["required"] for cell in suite.cells.values()} == {"ultra"}
    suite.run("--t2n-level=CLOSE", engines="0.23").assert_outcomes(passed=1)
    assert [(nodeid, cell["required"]) for nodeid, cell in suite.cells.items()] == [
        (f"test_it[tract-{RECENT}]", "close")
    ]


def test_the_header_names_the_engines(suite):
    suite.pytester.makepyfile(ENCODER)
    result = suite.run("--t2n-khronos", "--t2n-cache-dir=cache", engines=f"0.21,{RECENT}")
    result.stdout.fnmatch_lines([f"t2n: tract 0.21.19 (0.21), {RECENT}; khronos 1.0.5; cache {suite.path}/cache"])
