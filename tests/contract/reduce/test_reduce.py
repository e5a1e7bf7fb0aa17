"""Real failures of real engines are reduced: wrong numbers, refusals, deaths, failures that need two outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

from t2n_core.engine import ResolvedEngine
from t2n_core.errors import InputError
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.reading.parser import read_text
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.writer import graph_text
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.reduce.case import FailingCase, ReducedCase, reduce_case
from t2n_core.releases.judges import Releases
from tests.releases import NEWEST
from tests.tract_cli import make_cli

RNG = np.random.default_rng(3)
Reduce = Callable[..., ReducedCase]


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.fixture
def releases() -> Iterator[Releases]:
    with Releases(offline=True) as cached_releases:
        yield cached_releases


@pytest.fixture
def reduced(resolved_engine: Callable[[str], ResolvedEngine], releases: Releases, tmp_path: Path) -> Reduce:
    """A function that writes a graph, without a look at what the version reads, and reduces it."""

    def run(graph: Graph, inputs: list[Any], version: str, oracle: str, expected: tuple[Any, ...] = (), **more: Any):
        archive = tmp_path / "case"
        archive.mkdir(exist_ok=True)
        (archive / "graph.nnef").write_text(graph_text(graph, spec=spec_for("tract", version)))
        engine = more.pop("engine", None) or resolved_engine(version)
        if oracle and oracle != "float64":
            resolved_engine(oracle)
        expected = expected or tuple(np.zeros(()) for _ in graph.outputs)
        case = FailingCase(CheckRequest(archive, [Sample(tuple(inputs), expected)]), engine)
        return reduce_case(case, tmp_path / "reduced", releases, oracle=oracle, **more)

    return run


def around(build: Any, x: Any, bad: Callable[[Any, Any], Any]) -> Graph:
    """A graph with statements before and behind a bad one, and an output that has nothing to do with it."""
    shape = x.shape
    before = build.op("tanh", "before", shape, x=x)
    for number in range(8):
        before = build.op("mul", f"scaled_{number}", shape, x=before, y=1.1)
    wrong = bad(build, before)
    behind = wrong
    for number in range(8):
        behind = build.op("add", f"moved_{number}", wrong.shape, x=behind, y=0.5)
    return build.outputs(build.op("abs", "other", shape, x=x), build.op("relu", "behind", wrong.shape, x=behind))


def stretched(build: Any, x: Any) -> Any:
    mean = build.op("mean_reduce", "mean", (2, 8, 1), input=x, axes=[2])
    return build.op("sub", "wrong", x.shape, x=mean, y=x)


def test_wrong_numbers_are_reduced_to_one_operator(reduced: Reduce, build: Any, tmp_path: Path) -> None:
    graph = around(build, build.input("x", (2, 8, 40)), stretched)
    seen: list[str] = []
    result = reduced(graph, [normal(2, 8, 40)], "0.21.8", NEWEST, progress=lambda name, program: seen.append(name))
    program = result.reduced.program
    assert [assignment.operator for assignment in program.assignments] == ["sub"]
    assert program.elements == 33  # the engine takes the bad kernel only above 32 elements
    assert result.reduced.blamed == "sub"
    assert result.reduced.complete
    assert "first wrong value" in seen
    assert str(result.reduced.failure) == "mismatch at compare"
    arrays = np.load(tmp_path / "reduced" / "io.npz")
    (output,) = program.outputs
    first, second = (arrays[name] for name in program.assignments[0].names())
    np.testing.assert_allclose(arrays[output], (first - second).reshape(arrays[output].shape))


def test_the_nearest_right_release_is_the_oracle(reduced: Reduce, build: Any) -> None:
    x = normal(2, 8, 40)
    a = build.input("x", x.shape)
    mean = build.op("mean_reduce", "mean", (2, 8, 1), input=a, axes=[2])
    graph = build.outputs(build.op("sub", "y", x.shape, x=mean, y=a))
    result = reduced(graph, [x], "0.21.8", "", (x.mean(2, keepdims=True) - x,))
    assert result.report is not None
    assert result.oracle == f"tract {result.report.nearest_right(Version('0.21.8'))}"
    assert result.reduced.program.elements == 33


def test_a_reduction_is_the_same_each_time_and_goes_on_where_it_stopped(
    reduced: Reduce, build: Any, tmp_path: Path, resolved_engine: Any, releases: Releases
) -> None:
    graph = around(build, build.input("x", (2, 8, 40)), stretched)
    x = normal(2, 8, 40)
    first = reduced(graph, [x], "0.21.8", NEWEST)
    text = first.reduced.program.text()
    assert reduced(graph, [x], "0.21.8", NEWEST).reduced.program.text() == text
    stopped = reduced(graph, [x], "0.21.8", NEWEST, seconds=0.0)
    assert not stopped.reduced.complete
    assert stopped.reduced.program.operators > 10
    sample = Sample(tuple(stopped.reduced.program.inputs.values()), (np.zeros(()),) * 2)
    again = FailingCase(CheckRequest(stopped.folder, [sample]), resolved_engine("0.21.8"))
    assert reduce_case(again, tmp_path / "reduced", releases, oracle=NEWEST).reduced.program.text() == text


def test_a_death_is_reduced(reduced: Reduce, build: Any) -> None:
    window = {"size": [1, 1, 3], "border": "replicate", "padding": [(0, 0), (0, 0), (1, 1)]}
    graph = around(
        build, build.input("x", (2, 8, 40)), lambda b, x: b.op("max_pool", "wrong", x.shape, input=x, **window)
    )
    result = reduced(graph, [normal(2, 8, 40)], NEWEST, "float64")
    assert result.reduced.failure.status == "crash"
    assert ".rs:" in result.reduced.failure.detail
    assert [assignment.operator for assignment in result.reduced.program.assignments] == ["max_pool"]
    assert result.reduced.program.elements == 1


def test_a_refusal_is_reduced_and_its_sizes_become_numbers(reduced: Reduce, build: Any) -> None:
    from t2n_core.nnef.sizes.dims import symbol

    size = symbol("T")
    build.graph.extensions.append("tract_symbol T")
    bad = {"axes": [1], "begin": [1], "end": [13], "stride": [1]}
    graph = around(
        build, build.input("x", (2, 8, size)), lambda b, x: b.op("slice", "wrong", (2, 7, size), input=x, **bad)
    )
    result = reduced(graph, [normal(2, 8, 40)], NEWEST, "0.22.4")
    assert (result.reduced.failure.status, result.reduced.failure.stage) == ("error", "load")
    assert [assignment.operator for assignment in result.reduced.program.assignments] == ["slice"]
    assert result.reduced.program.elements == 1
    assert "T" not in result.reduced.program.text().split("graph network")[1]


def test_a_failure_that_needs_two_outputs_keeps_two(reduced: Reduce, build: Any) -> None:
    """Two equal relu of one tensor, both alive until two outputs: a Dummy op is run in 0.21.6 and 0.21.7."""
    x = build.input("x", (2, 3, 4))
    first, second = (build.op("relu", name, (2, 3, 4), x=x) for name in ("first", "second"))
    flat = build.op("reshape", "flat", (2, 12), input=second, shape=[2, 12])
    graph = build.outputs(build.op("tanh", "a", (2, 12), x=flat), build.op("exp", "b", (2, 3, 4), x=first))
    result = reduced(graph, [normal(2, 3, 4)], "0.21.6", NEWEST)
    assert "Dummy op" in result.reduced.failure.detail
    assert result.reduced.program.operators == 3
    assert len(result.reduced.program.outputs) == 2
    assert result.reduced.program.elements <= 4


def test_a_scan_is_reduced_with_its_body(reduced: Reduce, build: Any, tmp_path: Path) -> None:
    """A reshape in the step of a scan is wrong up to 0.20.18."""
    from t2n_core.nnef.graph import fragment_of

    step = fragment_of(
        "fragment step(x: tensor<scalar>, h: tensor<scalar>, c: tensor<scalar>, w: tensor<scalar>) -> "
        "(h_new: tensor<scalar>, c_new: tensor<scalar>)\n{\n"
        "  all = reshape(add(matmul(h, unsqueeze(w, axes = [0]), transposeB = true), x), shape = [4, 1, 8]);\n"
        "  i = slice(all, axes = [0], begin = [0], end = [1]);\n  f = slice(all, axes = [0], begin = [1], end = [2]);\n"
        "  c_new = add(mul(sigmoid(f), c), tanh(i));\n  h_new = mul(sigmoid(f), tanh(c_new));\n}"
    )
    build.graph.fragments["step"] = step
    x, start, w = build.input("x", (6, 1, 32)), build.input("start", (1, 1, 8)), build.input("w", (32, 8))
    parts = {"scan": [("x", x, 0, 1)], "state": [("h", start, "h_new"), ("c", start, "c_new")], "full": [("w", w)]}
    (y,) = build.ops("tract_core_scan", {"f": [6, 1, 8]}, body="step", output=[("h_new", "full", 0, 1)], **parts)
    graph = build.outputs(build.op("add", "y", (6, 1, 8), x=y, y=1.0))
    result = reduced(graph, [normal(6, 1, 32), normal(1, 1, 8), normal(32, 8)], "0.20.18", "0.20.22")
    assert [assignment.operator for assignment in result.reduced.program.assignments] == ["tract_core_scan"]
    assert result.reduced.program.elements <= 16
    body = result.reduced.program.fragments["step"].body
    assert body is not None
    assert len(body) < len(read_text(f"{step.text} graph g() -> (o) {{}}").fragments["step"].body or ())


def test_a_command_line_of_tract_is_reduced(
    reduced: Reduce, build: Any, tmp_path: Path, resolved_engine: Callable[[str], ResolvedEngine]
) -> None:
    from t2n_core.engine.provision.binary import resolve_binary

    binary = make_cli(tmp_path, resolved_engine(NEWEST), spoil="outputs[0] = outputs[0] + 1")
    graph = build.outputs(build.op("exp", "y", (1, 2), x=build.op("tanh", "t", (1, 2), x=build.input("x", (1, 2)))))
    engine = resolve_binary(binary, f"path:{binary}")
    result = reduced(graph, [normal(1, 2)], NEWEST, NEWEST, engine=engine)
    assert result.reduced.program.operators == 1
    assert result.reduced.program.elements == 1


def test_the_khronos_tools_are_reduced(build: Any, tmp_path: Path, releases: Releases, reduced: Reduce) -> None:
    """An operator that strict NNEF does not have."""
    x = build.input("x", (2, 3))
    y = build.op("tract_core_erf", "y", (2, 3), x=build.op("tanh", "t", (2, 3), x=x))
    archive = tmp_path / "khronos"
    archive.mkdir()
    text = graph_text(build.outputs(build.op("exp", "z", (2, 3), x=y)), spec=spec_for("tract", NEWEST))
    (archive / "graph.nnef").write_text(text.replace("extension tract_registry tract_core;\n", ""))
    case = FailingCase(CheckRequest(archive, [Sample((normal(2, 3),), (normal(2, 3),))]), None)
    result = reduce_case(case, tmp_path / "reduced", releases, oracle="float64")
    assert [assignment.operator for assignment in result.reduced.program.assignments] == ["tract_core_erf"]
    assert result.oracle == ""


def test_what_is_right_is_not_reduced(reduced: Reduce, build: Any) -> None:
    graph = build.outputs(build.op("relu", "y", (2,), x=build.input("x", (2,))))
    with pytest.raises(InputError, match=r"does not fail in tract 0\.23\.9"):
        reduced(graph, [np.ones(2, np.float32)], NEWEST, "0.22.4", (np.ones(2, np.float32),))
    with pytest.raises(InputError, match=r"tract 0\.22\.4, computes what tract 0\.23\.9 does"):
        reduced(graph, [np.ones(2, np.float32)], NEWEST, "0.22.4", (np.zeros(2, np.float32),))


def test_a_folder_with_other_files_is_left_alone(reduced: Reduce, build: Any, tmp_path: Path) -> None:
    (tmp_path / "reduced").mkdir()
    (tmp_path / "reduced" / "thesis.txt").write_text("dear")
    graph = build.outputs(build.op("relu", "y", (2,), x=build.input("x", (2,))))
    with pytest.raises(InputError, match="has other files"):
        reduced(graph, [np.ones(2, np.float32)], NEWEST, "0.22.4")
    assert (tmp_path / "reduced" / "thesis.txt").read_text() == "dear"


def test_the_result_is_an_archive(reduced: Reduce, build: Any, tmp_path: Path) -> None:
    result = reduced(around(build, build.input("x", (2, 8, 40)), stretched), [normal(2, 8, 40)], "0.21.8", NEWEST)
    read = read_archive(tmp_path / "reduced").document
    assert read.outputs == result.reduced.program.outputs
    assert list(result.expected) == list(read.outputs)
