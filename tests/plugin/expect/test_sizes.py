"""An expectation holds for the kind and the size of a failure."""

from __future__ import annotations

import math

import pytest

from pytest_t2n.expect.entries import parse_expectations
from pytest_t2n.expect.size import off_by, with_room
from pytest_t2n.records.schema import CellLine, ErrorLine, MetricLine, OutputLine
from tests.releases import RECENT

ENTRY = """\
[[expect]]
case = "test_m[1]"
engine = "tract"
stage = "compare"
status = "mismatch"
reason = "known"
"""


def cell(*outputs: OutputLine, metrics: tuple[MetricLine, ...] = (), error: str = "ParityError") -> CellLine:
    return CellLine(
        schema=1,
        nodeid=f"t.py::test_m[1-tract-{RECENT}]",
        case="t.py::test_m[1]",
        target="tract",
        version=RECENT,
        label=RECENT,
        status="mismatch",
        stage="compare",
        outputs=list(outputs),
        metrics=list(metrics),
        error=ErrorLine(error, "other numbers"),
    )


def output(max_abs: float | str, status: str = "mismatch", problem: str = "") -> OutputLine:
    return OutputLine("y", "float32", [1], status, "close", max_abs=max_abs, problem=problem)


@pytest.mark.parametrize(
    ("record", "size"),
    [
        (cell(output(0.001), output(0.25), output(9.0, "pass")), 0.25),
        (cell(output(0.5, problem="dtype int32, expected float32")), math.inf),
        (cell(output("inf", problem="1 NaN where the other side has none")), math.inf),
        (cell(output("nan")), math.inf),
        (cell(), math.inf),
        (cell(output(0.1, "pass"), metrics=(MetricLine("m", "<= 0.5", 0.75, False),)), 0.25),
        (cell(metrics=(MetricLine("m", ">= 0.5", 0.25, False), MetricLine("n", "<= 1", 9, True))), 0.25),
        (cell(metrics=(MetricLine("m", ">= 0.5", "nan", False),)), math.inf),
    ],
)
def test_the_size_of_a_mismatch(record, size):
    assert off_by(record) == size


@pytest.mark.parametrize(
    ("seen", "written"),
    [(0.001, 0.002), (0.0011, 0.005), (0.3, 1.0), (1, 2), (4e300, 1e301), (1.7e308, math.inf), (math.inf, math.inf)],
)
def test_a_size_is_written_down_with_room(seen, written):
    assert with_room(seen) == written


@pytest.mark.parametrize(
    ("more", "record", "holds"),
    [
        ("off_by = 0.002", cell(output(0.001)), True),
        ("off_by = 0.002", cell(output(0.5)), False),
        ("off_by = 0.002", cell(output("inf", problem="1 NaN where the other side has none")), False),
        ("off_by = inf", cell(output("inf", problem="1 NaN where the other side has none")), True),
        ("", cell(output(0.001)), False),
        ('off_by = 1\nerror = "ParityError"', cell(output(0.001)), True),
        ('off_by = 1\nerror = "ParityError"', cell(output(0.001), error="SecondCallError"), False),
    ],
)
def test_what_an_entry_holds_for(more, record, holds):
    (entry,) = parse_expectations(ENTRY + more, "known.toml")
    assert entry.holds(record) == holds


GROWS = """
    import os
    import pytest

    @pytest.mark.nnef_export
    def test_grows():
        return os.environ["WHAT"], (1,)
"""


def test_a_failure_of_another_size_or_class_is_a_surprise(suite, monkeypatch):
    suite.pytester.makepyfile(GROWS)
    monkeypatch.setenv("WHAT", "mismatch")
    expectations = suite.path / "known.toml"
    assert suite.run("--t2n-expect=known.toml", "--t2n-accept", engines="0.23").ret == 0
    written = expectations.read_text()
    assert "off_by = 5.0\n" in written
    assert 'error = "ParityError"\n' in written
    suite.run("--t2n-expect=known.toml", engines="0.23").assert_outcomes(xfailed=1)

    expectations.write_text(written.replace("off_by = 5.0", "off_by = 0.5"))
    result = suite.run("--t2n-expect=known.toml", "-rA", engines="0.23")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "the result of this cell is not the expected one: mismatch at stage `compare` (ParityError), off by 1.",
            "*expects mismatch (ParityError) at stage `compare`, off by at most 0.5, of *",
            'If that is now right, write stage = "compare" and * and off_by = 5; --t2n-accept does it for you.',
        ]
    )
    suite.run("--t2n-expect=known.toml", "--t2n-accept", engines="0.23").assert_outcomes(xfailed=1)
    assert expectations.read_text() == written

    expectations.write_text(written.replace("off_by = 5.0\n", ""))
    suite.run("--t2n-expect=known.toml", engines="0.23").assert_outcomes(failed=1)

    monkeypatch.setenv("WHAT", "bug")
    assert suite.run("--t2n-expect=known.toml", "--t2n-accept", engines="0.23").ret == 0
    expectations.write_text(expectations.read_text().replace("KeyError", "ValueError"))
    suite.run("--t2n-expect=known.toml", engines="0.23").assert_outcomes(failed=1)
