"""Cases of ONNX's backend tests in real releases, against the table of verdicts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import pytest

from conformance.lab.upstream.cases import HERE
from conformance.onnx.cases import generated
from conformance.onnx.judge import compare, judge
from conformance.onnx.known import CAUSES
from conformance.onnx.table import Row, read
from conformance.onnx.upstream import write_upstream_cases
from t2n_core.onnx_file.data_set import read_tensors
from tests.releases import LINES, NEWEST

TABLE = read()
OLDER = LINES[2]
SAMPLE = TABLE.rows[::25]
"""Of every push; those that are wrong come in addition."""
WRONG = [row for row in TABLE.rows if "wrong" in row.statuses.values() and row not in SAMPLE]
IN_REPOSITORY = ("onnx-lstm-reverse", "onnx-gru-reverse", "onnx-rnn-reverse")

pytestmark = pytest.mark.skipif(onnx.__version__ != TABLE.onnx, reason="another onnx generates other cases")


def differences(rows: list[Row], release: str, tract_engine: Any, folder: Path) -> list[tuple[str, str, str, str]]:
    """Return the cases with another verdict than the table has; rounding depends on the kernels of the processor."""
    deviations = []
    for row in rows:
        verdict, expected = judge(generated().cases[row.case], tract_engine(release), folder), row.statuses[release]
        kernels = {"rounding", "right"} if "rounding" in row.statuses.values() else {expected}
        if verdict.status != expected and {verdict.status, expected} != kernels:
            deviations.append((row.case, expected, verdict.status, verdict.reason))
    return deviations


@pytest.mark.parametrize("release", [OLDER, NEWEST])
def test_a_sample_of_the_table(release: str, tract_engine: Any, tmp_path: Path) -> None:
    assert differences([*SAMPLE, *WRONG], release, tract_engine, tmp_path) == []


@pytest.mark.nightly
@pytest.mark.parametrize("release", LINES)
def test_the_whole_table(release: str, tract_engine: Any, tmp_path: Path) -> None:
    assert differences(list(TABLE.rows), release, tract_engine, tmp_path) == []


def test_another_verdict_is_noticed_in_both_directions(tract_engine: Any, tmp_path: Path) -> None:
    rows = {row.case: row for row in TABLE.rows}
    for case, other in (("test_lstm_reverse", "right"), ("test_lstm_defaults", "wrong"), ("test_det_2d", "died")):
        actual = rows[case].statuses[NEWEST]
        moved = Row(case, "", 1, {NEWEST: other})  # type: ignore[dict-item]
        ((name, expected, status, _),) = differences([moved], NEWEST, tract_engine, tmp_path)
        assert (name, expected, status) == (case, other, actual)


def test_the_table_has_all_cases_that_onnx_generates() -> None:
    cases = generated().cases.values()
    assert {(case.name, case.operator, case.opset) for case in cases} == {
        (row.case, row.operator, row.opset) for row in TABLE.rows
    }
    assert generated().left_out == TABLE.left_out


def without_machine(text: str) -> str:
    """Return the text of an issue without what depends on the processor: its name, and the engine's last digits."""
    lines = text.partition("\n## Machine\n")[0].splitlines()
    return "\n".join(re.sub(r"\d+\.\d+", _rounded, line) if ", computed |" in line else line for line in lines)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.6f}"


def test_each_case_for_upstream_fails(tract_engine: Any, tmp_path: Path) -> None:
    names = write_upstream_cases(TABLE, NEWEST, tmp_path)
    wrong = {row.case for row in TABLE.rows if row.statuses[NEWEST] == "wrong"}
    causes = {cause.name: cause for cause in CAUSES if cause.example in wrong}
    assert set(names) == set(causes)
    for name, cause in causes.items():
        case, data = generated().cases[cause.example], tmp_path / name / "test_data_set_0"
        inputs = read_tensors(data, "input", len(case.inputs))
        (computed,) = tract_engine(NEWEST).run(tmp_path / name / "model.onnx", [inputs]).outputs
        assert compare(computed, case).status == "wrong"
        for stored, expected in zip(read_tensors(data, "output", len(case.outputs)), case.outputs, strict=True):
            assert stored.tobytes() == expected.tobytes()
        text = (tmp_path / f"{name}.issue.md").read_text("utf-8")
        assert text.startswith(f"# {cause.reason}\n")
        assert f"- `{case.name}`: " in text
        if name in IN_REPOSITORY:
            assert without_machine((HERE / f"{name}.issue.md").read_text("utf-8")) == without_machine(text)
            for file in (tmp_path / name).rglob("*.*"):
                assert (HERE / file.relative_to(tmp_path)).read_bytes() == file.read_bytes()
