"""Which exporters a test has: those of the option, or those of its marker, by name and as classes."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from tests import nets
from tests.plugin.exporters.toys import CACHE, NET, TOY
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

MARKED = (
    NET
    + """
from conftest import Toy
AXES = {"dynamic_axes": {"audio": {0: "T"}}}


class Other(Toy):
    name = "other"
    distribution = "pytest"


@pytest.mark.nnef_export(exporter="toy", **AXES)
def test_name():
    return last()


@pytest.mark.nnef_export(exporter=Other, **AXES)
def test_class():
    return last()


@pytest.mark.nnef_export(exporter=["t2n", "toy", Other], **AXES)
def test_list():
    return last()


@pytest.mark.nnef_export(**AXES)
def test_session():
    return last()
"""
)
OF_MARKERS = ["name[toy-", "class[other-", "list[", "list[toy-", "list[other-"]


def run(suite, *options: str):
    return suite.run("--t2n-report=site", CACHE, *options, engines=RECENT, alone=True, modules=FOR_EXPORTS)


@pytest.mark.parametrize(("option", "session"), [("t2n", ["session["]), ("t2n,toy", ["session[", "session[toy-"])])
def test_the_marker_names_the_exporters_of_its_test(suite, option, session):
    suite.pytester.makeconftest(TOY)
    suite.pytester.makepyfile(MARKED)
    columns = [*OF_MARKERS, *session]
    run(suite, f"--t2n-exporter={option}").assert_outcomes(passed=len(columns))
    assert list(suite.statuses) == [f"test_{column}tract-{RECENT}]" for column in columns]
    engines = suite.matrix[0]["engines"]
    versions = {engine["exporter"]: engine.get("exporter_version") for engine in engines if "exporter" in engine}
    assert versions == {"other": pytest.__version__, "toy": None}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("toi", "ERROR: --t2n-exporter: there is no exporter 'toi'; did you mean `toy`[?]"),
        ("t2n,torch-onx", "ERROR: --t2n-exporter: there is no exporter 'torch-onx'; did you mean `torch-onnx`[?]"),
        ("needy", "ERROR: --t2n-exporter: the exporter needy needs no-such-distribution"),
    ],
)
def test_a_wrong_name_is_a_usage_error(suite, name, message):
    suite.pytester.makeconftest(
        TOY.replace("[Toy]", "[Toy, Needy]")
        + '\nclass Needy(Toy):\n    name = "needy"\n    requirements = ("no-such-distribution",)\n'
    )
    suite.pytester.makepyfile("def test_it(): pass")
    result = run(suite, f"--t2n-exporter={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_a_registered_class_without_a_name_is_a_usage_error(suite):
    suite.pytester.makeconftest(TOY.replace("[Toy]", "[dict]"))
    suite.pytester.makepyfile("def test_it(): pass")
    result = run(suite, "--t2n-exporter=toy")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-exporter: <class 'dict'> has the name None, not one of letters, *"])


@pytest.mark.parametrize(
    ("exporter", "message"),
    [
        ('"toi"', "there is no exporter 'toi'; did you mean `toy`?"),
        ("nn.Linear", "exporter: <class 'torch.nn.modules.linear.Linear'> is neither the name of an exporter"),
        ("type('E', (Toy,), {'name': 't2n'})", "has the name 't2n', which is another exporter's"),
        ("3", "exporter: 3 is neither the name of an exporter nor a subclass of t2n_core.Exporter"),
    ],
)
def test_a_wrong_exporter_of_a_marker_is_an_error(suite, exporter, message):
    suite.pytester.makeconftest(TOY)
    suite.pytester.makepyfile(
        f"{NET}\nfrom conftest import Toy\n\n@pytest.mark.nnef_export(exporter={exporter})\n"
        "def test_it():\n    return last()\n"
    )
    result = run(suite)
    assert result.ret == pytest.ExitCode.INTERRUPTED  # an error of collection, which no entry of expectations excuses
    assert message in result.stdout.str()


ONE_COLUMN = (
    NET
    + """
from pathlib import Path

from nets import TinyDecoder

Path("archive").mkdir(exist_ok=True)
Path("archive/graph.nnef").write_text(
    "version 1.0;\\ngraph g(x) -> (y)\\n{\\n  x = external(shape = [2, 3]);\\n  y = relu(x);\\n}\\n"
)


@pytest.mark.nnef_file("archive")
def test_file():
    pass


@pytest.mark.nnef_generate(state={"keys": 1, "values": 2}, dynamic_axes={"tokens": {1: "S"}}, steps=2)
def test_generate():
    caches = {"keys": torch.randn(1, 1, 5, 8), "values": torch.randn(1, 1, 5, 8)}
    return TinyDecoder().eval(), {"tokens": torch.randint(0, 23, (1, 3)), **caches}


@pytest.mark.nnef_export(dynamic_axes={"audio": {0: "T"}})
def test_last():
    return last()
"""
)


def test_files_and_generation_have_the_column_of_this_package_alone(suite):
    suite.pytester.makeconftest(TOY)
    suite.pytester.makepyfile(ONE_COLUMN, nets=Path(nets.__file__).read_text("utf-8"))
    run(suite, "--t2n-exporter=toy,t2n").assert_outcomes(passed=4)
    ends = ["file[", "generate[", "last[toy-", "last["]
    assert list(suite.statuses) == [f"test_{end}tract-{RECENT}]" for end in ends]


def test_a_test_without_a_column_says_so(suite):
    suite.pytester.makeconftest(TOY)
    suite.pytester.makepyfile(ONE_COLUMN, nets=Path(nets.__file__).read_text("utf-8"))
    result = run(suite, "--t2n-exporter=toy", "-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        ["SKIPPED * t2n: other exporters have no column in this test; --t2n-exporter=t2n,NAME *"]
    )


OF_BOTH = (
    NET
    + """
BOTH = {"target": ["tract", "khronos"]}


@pytest.mark.nnef_export(exporter=["t2n", "toy", "nnef-tools"], **BOTH)
def test_both():
    return nn.Linear(3, 4).eval(), {"input": torch.randn(5, 3)}


@pytest.mark.nnef_export(**BOTH)
def test_session():
    return nn.Linear(3, 4).eval(), {"input": torch.randn(5, 3)}
"""
)


def test_the_khronos_tools_read_the_exporters_that_write_the_standard(suite):
    suite.pytester.makeconftest(TOY)
    suite.pytester.makepyfile(OF_BOTH)
    run(suite, "--t2n-khronos", "--t2n-exporter=toy,nnef-tools,t2n").assert_outcomes(passed=10)
    columns = ["tract", "khronos", "toy-tract", "nnef-tools-tract", "nnef-tools-khronos"]
    ends = [column.replace("tract", f"tract-{RECENT}") for column in columns]
    assert set(suite.statuses) == {f"test_{name}[{end}]" for name in ("both", "session") for end in ends}


def test_onnxruntime_has_a_column_for_each_exporter_of_onnx_files(suite):
    suite.pytester.makepyfile(test_it=NET + "\n@pytest.mark.nnef_export\ndef test_net():\n    return last()\n")
    result = run(suite, "--t2n-exporter=t2n,nnef-tools,torch-onnx", "--t2n-onnxruntime", "--collect-only", "-q")
    ids = [line.partition("[")[2] for line in result.outlines if "::test_net[" in line]
    version = metadata.version("onnxruntime")
    release = ids[0].removeprefix("tract-")
    assert ids == [
        f"tract-{release}", f"nnef-tools-tract-{release}",
        f"torch-onnx-tract-{release}", f"torch-onnx-onnxruntime-{version}]",
    ]  # fmt: skip


def test_an_exporter_of_a_marker_has_the_same_columns_as_one_of_the_session(suite):
    standard = '\n\nclass Standard(Toy):\n    name = "standard"\n    writes_standard = True\n'
    suite.pytester.makeconftest(TOY.replace("[Toy]", "[Standard]") + standard)
    test = "\n@pytest.mark.nnef_export({}target=['tract', 'khronos'])\ndef test_net():\n    return last()\n"
    suite.pytester.makepyfile(
        test_session=NET + test.format(""),
        test_marker=NET + test.format("exporter=['standard', 'torch-onnx'], "),
    )
    options = ("--t2n-khronos", "--t2n-onnxruntime", "--collect-only", "-q")
    result = run(suite, "--t2n-exporter=standard,torch-onnx", *options)
    ids = [line.partition("::")[0::2] for line in result.outlines if "::test_net[" in line]
    session, marker = ([end for file, end in ids if file == f"test_{name}.py"] for name in ("session", "marker"))
    columns = ["standard-tract-", "standard-khronos", "torch-onnx-tract-", "torch-onnx-onnxruntime-"]
    assert [column in identity for column, identity in zip(columns, marker, strict=True)] == [True] * 4
    assert marker == session


def test_a_refused_model_is_dropped_like_any_other(suite):
    suite.pytester.makeconftest(
        TOY.replace("def export(self, request):", "def export(self, request):\n        raise OSError('no')\n")
    )
    suite.pytester.makepyfile(
        f"""{NET}
import gc
import weakref

MODELS = []


@pytest.mark.nnef_export(exporter="toy")
@pytest.mark.parametrize("turn", [0, 1])
def test_net(turn):
    model, inputs = last()
    MODELS.append(weakref.ref(model))
    return model, inputs


def test_one_is_gone():
    gc.collect()
    assert [model() is None for model in MODELS] == [True, False]
"""
    )
    result = run(suite)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*unsupported at stage `lower` in toy tract *OSError: no"])
