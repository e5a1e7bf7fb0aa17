"""The judgement of a case in an engine, and the explanations of cells that are not right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.dialect.judge import Status, Verdict, applies, difference, judge
from conformance.dialect.known import KNOWN, explanation
from conformance.dialect.known.cuda import ON_CUDA
from conformance.dialect.known.declutter import DECLUTTERED
from conformance.dialect.page import cell_text, dialect_page
from conformance.dialect.results import Judged, append_result, digest_of, read_results, suspects_in
from conformance.dialect.session import matrix, smallest
from conformance.dialect.together import write_cases
from t2n_core.dialect.cases import Case, operators
from t2n_core.dialect.operators import functions
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import EngineReply, ReplyStatus
from t2n_core.nnef.signatures import Parameter, Signature
from tests.releases import NEWEST

X = Parameter("x", "tensor<scalar>")
SILU = Signature("tract_core_silu", (X,), (Parameter("y", "tensor<scalar>"),), "tract_core")
CASE = Case("tract_core_silu", {"x": np.asarray([0.0, 30.0], np.float32)})


@pytest.mark.parametrize(
    ("found", "expected", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([1.0, 2.00003], [1.0, 2.0], ""),
        ([1.0, 2.125], [1.0, 2.0], "2.125 at [1], not 2.0"),
        ([np.nan, np.inf], [np.nan, np.inf], ""),
        ([0.0, 1.0], [np.nan, 1.0], "0.0 at [0], not nan; 1 of 2 elements"),
        ([np.nan, 1.0], [0.0, 1.0], "nan at [0]"),
        ([np.inf, 1.0], [-np.inf, 1.0], "inf at [0], not -inf"),
        ([np.inf, 1.0], [1e39, 1.0], ""),
        ([0.0, 1.0], [0.001, 100.0], "1.0 at [1]"),
    ],
)
def test_floats_differ_beyond_their_precision(found: list[float], expected: list[float], text: str) -> None:
    description = difference(np.asarray(found, np.float32), np.asarray(expected))
    assert description.startswith(text) if text else description == ""


def test_shapes_types_and_integers() -> None:
    assert difference(np.zeros((2, 1)), np.zeros(2)) == "shape [2, 1], not [2]"
    assert difference(np.zeros(2), np.zeros(2, np.int64)) == "float64, not int64"
    assert difference(np.zeros(2, np.int32), np.zeros(2, np.int64)) == ""
    assert difference(np.asarray([1, 2]), np.asarray([1, 3])) == "2 at [1], not 3; 1 of 2 elements"


def test_a_case_applies_where_the_release_has_its_arguments() -> None:
    assert applies(CASE, SILU)
    assert not applies(Case("tract_core_silu", {"x": X, "k": 1}), replace(SILU, parameters=(X, X)))


@dataclass
class Engine:
    """An engine that replies what it was made with."""

    status: ReplyStatus
    output: Sequence[float] = ()
    version: str = NEWEST

    def run(self, archive: Path, batches: Sequence[Any], *, timeout: float, **options: Any) -> EngineReply:
        assert (archive / "graph.nnef").is_file()
        outputs = ((np.asarray(self.output, np.float32),),) if self.status == "ok" else ()
        return EngineReply(self.status, "run", "why", outputs=outputs)


@pytest.mark.parametrize(
    ("engine", "status", "reason"),
    [
        (Engine("ok", [0.0, 30.0]), "right", ""),
        (Engine("ok", [0.0, 29.0]), "wrong", "29.0 at [1], not 29.999999999997197; 1 of 2 elements"),
        (Engine("error"), "refused", "run: why"),
        (Engine("crash"), "crashed", "run: why"),
        (Engine("oom"), "crashed", "run: why"),
        (Engine("timeout"), "timed out", "run: why"),
    ],
)
def test_verdicts(engine: Engine, status: str, reason: str, tmp_path: Path) -> None:
    (verdict,) = judge([CASE], functions()["tract_core_silu"], SILU, engine, tmp_path)  # type: ignore[arg-type]
    assert (verdict.status, verdict.reason, verdict.release) == (status, reason, NEWEST)
    assert list(tmp_path.iterdir()) == []


@dataclass
class Picky:
    """An engine that dies of graphs with more values than it holds, and answers others with their inputs."""

    most: int
    version: str = NEWEST
    runs: int = 0

    def run(self, archive: Path, batches: Sequence[Any], *, timeout: float, **options: Any) -> EngineReply:
        self.runs += 1
        graph = (archive / "graph.nnef").read_text("utf-8")
        assert graph.count("tract_core_external") == len(batches[0])
        if any(array.size > self.most for array in batches[0]):
            return EngineReply("crash", "run", "too large")
        return EngineReply("ok", "run", outputs=(tuple(batches[0]),))


def test_cases_are_judged_together_and_one_that_fails_alone(tmp_path: Path) -> None:
    zeros = [Case("tract_core_silu", {"x": np.zeros(1 + number, np.float32)}) for number in range(16)]
    engine = Picky(15)
    verdicts = list(judge(zeros, functions()["tract_core_silu"], SILU, engine, tmp_path))  # type: ignore[arg-type]
    assert [(verdict.number, verdict.status) for verdict in sorted(verdicts, key=lambda verdict: verdict.number)] == [
        *((number, "right") for number in range(15)),
        (15, "crashed"),
    ]
    assert engine.runs == 9  # each half of 16, 8, 4 and 2 that holds the last case fails
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_several_cases_has_names_for_each(tmp_path: Path) -> None:
    stored = Case("tract_core_silu", {"x": np.ones(3, np.float32)}, frozenset({"x"}))
    archive = write_cases([CASE, stored], SILU, tmp_path / "both")
    assert sorted(path.name for path in archive.iterdir()) == ["c1_x_.dat", "graph.nnef"]
    graph = (archive / "graph.nnef").read_text("utf-8")
    assert "graph cases(c0_x_) -> (c0_out_0, c1_out_0)" in graph
    assert 'c1_x_ = variable<scalar>(label = "c1_x_", shape = [3]);' in graph
    assert "c1_out_0 = tract_core_silu(x = c1_x_);" in graph


def test_kept_verdicts_are_those_of_the_same_cases(tmp_path: Path) -> None:
    definition = functions()["tract_core_silu"]
    digest = digest_of([CASE], definition, SILU)
    assert digest == digest_of([CASE], definition, SILU)
    other = Case("tract_core_silu", {"x": np.asarray([0.0, 31.0], np.float32)})
    assert digest != digest_of([other], definition, SILU)
    append_result(tmp_path, NEWEST, Judged("tract_core_silu", "old", 1.0, [(0, "right", "")]))
    append_result(tmp_path, NEWEST, Judged("tract_core_silu", digest, 2.0, [(0, "wrong", "why")]))
    with (tmp_path / f"{NEWEST}.jsonl").open("a") as file:
        file.write('{"op": "tract_core_erf", "dig')  # the run was killed
    results = read_results(tmp_path, NEWEST)
    assert {op: result.digest for op, result in results.items()} == {"tract_core_silu": digest}
    assert list(results["tract_core_silu"].verdicts(NEWEST, [CASE])) == [Verdict(CASE, 0, NEWEST, "wrong", "why")]
    assert read_results(tmp_path, "0.22.4") == {}


def test_a_line_of_releases_is_one_cell() -> None:
    right: Counter[Status] = Counter({"right": 3})
    wrong: Counter[Status] = Counter({"right": 2, "wrong": 1})
    line = ["0.21.3", "0.21.4", "0.21.5"]
    assert cell_text(dict.fromkeys(line, right), line) == "3"
    assert cell_text(dict.fromkeys(line, wrong), line) == "2 right, 1 wrong"
    assert cell_text({"0.21.3": wrong, "0.21.4": right, "0.21.5": right}, line) == (
        "0.21.3: 2 right, 1 wrong; 0.21.4 to 0.21.5: 3"
    )
    assert cell_text({"0.21.5": right}, line) == "0.21.5: 3"
    assert cell_text({}, line) == ""


def test_the_page_names_what_is_not_right_by_its_releases() -> None:
    nan = Case("tract_core_silu", {"x": np.asarray([np.nan], np.float32)})
    releases = ["0.22.4", "0.23.0", "0.23.1"]
    verdicts = [Verdict(CASE, 0, release, "right") for release in releases]
    verdicts += [Verdict(nan, 1, release, "wrong", "why") for release in releases[1:]]
    text = dialect_page(verdicts, 90.0)
    assert "in 3 releases of tract" in text
    assert "| `tract_core_silu` | float32 | 1 | 1 right, 1 wrong |" in text
    assert "| `tract_core_silu` | wrong | 0.23.0 to 0.23.1 | NaN becomes -6.5e-6 |" in text


def test_the_table_and_the_smallest_cases() -> None:
    small = Case("tract_core_silu", {"x": np.asarray([np.nan], np.float32)})
    large = Case("tract_core_silu", {"x": np.asarray([np.nan, 1.0], np.float32)})
    verdicts = [
        Verdict(CASE, 0, NEWEST, "right"),
        Verdict(large, 1, NEWEST, "wrong", "a"),
        Verdict(small, 2, NEWEST, "wrong", "b"),
        Verdict(CASE, 0, "0.22.4", "crashed", "c"),
    ]
    assert "| `tract_core_silu` | 1 right, 2 wrong | 1 crashed |" in matrix(verdicts)
    assert [verdict.reason for verdict in smallest(verdicts)] == ["b", "c"]


def test_an_explanation_holds_for_its_releases_cases_and_statuses_only() -> None:
    nan = Case("tract_core_silu", {"x": np.asarray([np.nan], np.float32)})
    assert explanation(Verdict(nan, 0, "0.23.0", "wrong")) in KNOWN
    assert explanation(Verdict(nan, 0, "0.22.4", "wrong")) is None
    assert explanation(Verdict(nan, 0, "0.23.0", "crashed")) is None
    assert explanation(Verdict(CASE, 0, "0.23.0", "wrong")) is None


def test_an_explanation_for_a_runtime_holds_there_only() -> None:
    case = Case("tract_core_log_softmax", {"x": np.zeros(3, np.float32), "axes": [0]})
    assert explanation(Verdict(case, 0, NEWEST, "wrong")) is None
    assert explanation(Verdict(case, 0, NEWEST, "wrong", runtime="cuda")) in ON_CUDA
    assert explanation(Verdict(case, 0, NEWEST, "crashed", runtime="cuda")) is None


def test_an_explanation_for_a_path_holds_there_only() -> None:
    arguments = {"input": np.zeros((1, 1, 9), np.float32), "filter": np.zeros((2, 1, 1), np.float32)}
    case = Case("conv", {**arguments, "padding": [(2, 2)], "stride": [3]})
    decluttered = Verdict(case, 0, "0.20.7", "refused")
    assert explanation(decluttered) in DECLUTTERED
    assert explanation(replace(decluttered, release="0.20.18")) is None
    assert explanation(replace(decluttered, path=EnginePath.OPTIMISE_ONLY)) is None


def test_explanations_name_operators_that_have_cases() -> None:
    assert {op for entry in (*KNOWN, *DECLUTTERED) for op in entry.operators} <= set(operators())


class Slow(Picky):
    """An engine that takes too long for large graphs."""

    def run(self, archive: Path, batches: Sequence[Any], *, timeout: float, **options: Any) -> EngineReply:
        reply = super().run(archive, batches, timeout=timeout, **options)
        return reply if reply.status == "ok" else EngineReply("timeout", "optimise", "killed")


def test_a_graph_that_takes_too_long_is_not_halved_and_suspects_are_alone(tmp_path: Path) -> None:
    zeros = [Case("tract_core_silu", {"x": np.zeros(1 + number, np.float32)}) for number in range(8)]
    silu = functions()["tract_core_silu"]
    engine, again = Slow(7), Slow(7)
    verdicts = list(judge(zeros, silu, SILU, engine, tmp_path))  # type: ignore[arg-type]
    assert {verdict.number: verdict.status for verdict in verdicts} == {
        **dict.fromkeys(range(7), "right"),
        7: "timed out",
    }
    assert engine.runs == 1 + 8
    other_verdicts = list(judge(zeros, silu, SILU, again, tmp_path, suspects={7}))  # type: ignore[arg-type]
    assert {verdict.number: verdict.status for verdict in other_verdicts} == {
        verdict.number: verdict.status for verdict in verdicts
    }
    assert again.runs == 2


def test_suspects_are_those_of_the_nearest_release_of_the_line(tmp_path: Path) -> None:
    rows: dict[str, Status] = {"0.21.3": "crashed", "0.21.9": "refused", "0.22.0": "timed out"}
    for number, (release, status) in enumerate(rows.items()):
        append_result(tmp_path, release, Judged("tract_core_silu", "", 1.0, [(number, status, ""), (9, "wrong", "")]))
    assert suspects_in(tmp_path, "0.21.8") == {"tract_core_silu": {1}}
    assert suspects_in(tmp_path, "0.21.9") == {"tract_core_silu": {0}}
    assert suspects_in(tmp_path, "0.23.0") == {}
