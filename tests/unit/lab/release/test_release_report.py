"""The report about a release: differences of statuses, errata by JUnit's results, parts that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.lab.release.__main__ import Part, section
from conformance.lab.release.differences import MOST_LINES, describe_differences
from conformance.lab.release.errata import describe_errata
from conformance.lab.release.suites import describe_suites
from pytest_t2n.records.schema import SCHEMA, CellLine
from t2n_core.engine.protocol import OPERATORS
from t2n_core.parity.stage import Stage, Status

REPAIR, REFUSAL = "test_the_repair_is_right_and_needed", "test_refused_exactly_if_wrong"
FAILURES = {
    f"{REPAIR}[half-0.24.0]": "AssertionError: right without the repair&#10;assert not True",
    f"{REFUSAL}[0.24.0-box_sum]": "AssertionError: refused, and right",
    f"{REFUSAL}[0.24.0-deconv]": "AssertionError: 0.24.0 answers ok: &#10;assert []",
}
JUNIT = "".join(
    [
        "<testsuites><testsuite>",
        f'<testcase name="{REPAIR}[swapped_sub-0.24.0]"/>',
        f'<testcase name="{REFUSAL}[0.24.0-later]"><skipped/></testcase>',
        *(f'<testcase name="{name}"><failure message="{text}"/></testcase>' for name, text in FAILURES.items()),
        f'<testcase name="{REFUSAL}[0.24.0-conv]"><error message="failed on setup"/></testcase>',
        "</testsuite></testsuites>",
    ]
)


def test_errata_hold_are_mended_or_new(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(JUNIT, "utf-8")
    lines = describe_errata(report, "0.24.0")
    assert lines[0] == "1 errata and refusals hold as they are written."
    mended = lines.index("Mended:")
    assert lines[mended + 2 : mended + 4] == [
        "- `half`: AssertionError: right without the repair",
        "- `box_sum`: AssertionError: refused, and right",
    ]
    assert lines[-2:] == ["- `deconv`: AssertionError: 0.24.0 answers ok: ", "- `conv`: failed on setup"]


def test_a_report_without_tests_proves_nothing(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text("<testsuites><testsuite/></testsuites>", "utf-8")
    with pytest.raises(RuntimeError, match="no test of errata ran"):
        describe_errata(report, "0.24.0")


def test_what_became_worse_comes_first() -> None:
    before = {"a": "right", "b": "wrong", "c": "right", "d": "refused"}
    lines = describe_differences("cases", before, {**before, "b": "right", "c": "wrong", "e": "refused"})
    assert lines == [
        "2 of 4 cases end as before. 1 are new: 1 of `e` refused.",
        "",
        "- `c`: right before, wrong now",
        "- `b`: wrong before, right now",
    ]
    grouped = describe_differences(
        "cases", {"f 1": "right", "f 2": "right"}, {"f 1": "wrong", "f 2": "wrong"}, lambda _: "f"
    )
    assert grouped[-1] == "- `f`, 2 of them: right before, wrong now"
    assert describe_differences("cells", {"a": "pass at close", "b": "pass"}, {"a": "pass at exact"})[-2:] == [
        "- `b`: pass before, missing now",
        "- `a`: pass at close before, pass at exact now",
    ]
    with pytest.raises(ValueError, match="no cells of one of both releases"):
        describe_differences("cells", {"a": "pass"}, {})
    many = {str(number): "right" for number in range(MOST_LINES + 5)}
    assert describe_differences("cases", many, dict.fromkeys(many, "wrong"))[-1] == "- and 5 more"


def cell(case: str, status: Status, run: float, **operators: int) -> CellLine:
    return CellLine(
        schema=SCHEMA, nodeid=case, case=case, target="tract", version="0", label="0", status=status,
        stage=Stage.COMPARE, times={"load": 1.0, "run": run}, facts={OPERATORS: operators},
    )  # fmt: skip


def test_suites_name_lost_fusions_and_times() -> None:
    before = {"x": cell("x", Status.PASS, 1.0, RmsNorm=2), "y": cell("y", Status.PASS, 2.0, Conv=1)}
    now = {"x": cell("x", Status.PASS, 3.0, Reduce=4), "y": cell("y", Status.MISMATCH, 2.0, Conv=1)}
    lines = describe_suites(before, now)
    assert lines[:3] == ["1 of 2 cells end as before.", "", "- `y`: pass before, mismatch now"]
    assert "- `x`: Reduce +4, RmsNorm -2" in lines
    assert lines[-1] == "Time of `run`: 2.00 times that before, the median of 2 cases."


def test_a_part_that_is_there_is_not_computed_again(tmp_path: Path) -> None:
    calls: list[Path] = []

    def compare(release: str, against: str, folder: Path) -> Sequence[str]:
        calls.append(folder)
        return [f"{against} to {release}"]

    part = Part("errata", compare, is_quick=True)
    text = section(part, "0.24.0", "0.23.8", tmp_path / "new")
    assert text == "\n## Errata\n\n0.23.8 to 0.24.0\n"
    assert section(part, "0.24.0", "0.23.8", tmp_path / "new") == text
    assert section(part, "0.24.0", "0.23.7", tmp_path / "new") == "\n## Errata\n\n0.23.7 to 0.24.0\n"
    assert calls == [tmp_path / "new" / f"errata-since-{against}" for against in ("0.23.8", "0.23.7")]
