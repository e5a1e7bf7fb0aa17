"""The league: results kept from the records of suites, and pages with their counts and errors."""

from __future__ import annotations

import msgspec
import pytest

from conformance.league.pages import totals, write_pages
from conformance.league.records import results_of_session
from conformance.league.results import RIGHT, WRONG, keep_results, read_results
from pytest_t2n.records.file import encode
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, EngineLine, ErrorLine, PlanLine, PlatformLine, RunLine

OLD, NEW = "0.21.19", "0.22.4"


def cell(case, exporter, version, status="pass", stage="compare", strict="", author="", **more):
    """Return a cell; one of another exporter has its status by both profiles."""
    target = more.pop("target", "tract")
    facts = {"profiles": {"values": status, "strict": strict or status}} if exporter and stage != "lower" else {}
    facts |= {"author": author} if author else {}
    message = f"{status}:\n  | of {case} in /tmp/t2n-{version.replace('.', '')}/7.onnx\nmore"
    error = None if status == "pass" else ErrorLine("Error", message, fingerprint=version)
    nodeid = f"test_s.py::{case}[{'-'.join(filter(None, (exporter, target, version)))}]"
    return CellLine(
        SCHEMA, nodeid, f"test_s.py::{case}", target, version, version, status, stage,
        error=error, facts=facts, exporter=exporter, **more,
    )  # fmt: skip


CELLS = [
    *(
        cell(f"test_{name}", "", version, times={"capture": 1.0, "load": 0.5, "run": 0.5}, sizes=[{"T": 2}])
        for name in "ab"
        for version in (OLD, NEW)
    ),
    cell("test_c", "", NEW, "unsupported", "lower"),
    cell("test_a", "other", OLD, "error", "load"),
    cell("test_a", "other", NEW, times={"export": 4.0, "load": 0.25, "run": 1.0}, sizes=[{"T": 2}]),
    cell("test_b", "other", OLD, "mismatch"),
    cell("test_f", "other", OLD, "mismatch"),
    cell("test_b", "other", NEW, strict="mismatch", times={"export": 2.0, "load": 0.25, "run": 9.0}, sizes=[{"T": 3}]),
    cell("test_c", "other", NEW, "weak", op="aten_c"),
    cell("test_d", "other", NEW, "crash", "run"),
    cell("test_1", "other", NEW, "mismatch", author="exporter"),
    cell("test_2", "other", NEW, "mismatch", author="engine"),
    cell("test_e", "other", NEW, "skip", "setup"),
    cell("test_a", "other", "1.32.0", target="onnxruntime"),
    cell("test_d", "other", "1.32.0", target="onnxruntime"),
]


SECONDS = {"layers": 3720, "operators": 0, "sizes": 60}
PLATFORM = PlatformLine("key", model="EPYC", cores=2, versions={"python": "3.11.7", "torch": "2.13.0"})


@pytest.fixture
def folder(tmp_path):
    """The folder with the results of two suites; the session of a third was interrupted."""
    engines = [EngineLine("tract", version, version) for version in (OLD, NEW)]
    engines += [msgspec.structs.replace(engine, exporter="other", exporter_version="3.1") for engine in engines]
    engines.append(EngineLine("onnxruntime", "1.32.0", "1.32.0", exporter="other", exporter_version="3.1"))
    by_engine = {engine.id: [cell.nodeid for cell in CELLS if f"[{engine.id}]" in cell.nodeid] for engine in engines}
    plan = PlanLine(SCHEMA, cells=by_engine)
    run = RunLine(SCHEMA, "2026-01-02T03:04:05Z", engines, platforms=[PLATFORM])
    records = [run, plan, *CELLS, EndLine(SCHEMA, "2026-01-02T03:05:05Z")]
    for suite, seconds in SECONDS.items():
        (tmp_path / suite).mkdir()
        count = 9 if suite == "sizes" else len(records)
        (tmp_path / suite / "matrix.jsonl").write_text("".join(f"{encode(record)}\n" for record in records[:count]))
        if session := results_of_session(tmp_path / suite, suite, seconds):
            keep_results(tmp_path / "results", *session)
    return tmp_path / "results"


@pytest.fixture
def results(folder):
    return read_results(folder, ["recurrent", "layers", "operators", "sizes"])


def test_results_are_from_the_suites_that_ran_to_their_end(results):
    assert (results.suites, results.releases, results.onnxruntime) == (["layers", "operators"], [OLD, NEW], "1.32.0")
    assert [result.outcome for result in results.of("other", OLD, "layers")] == ["engine refuses", WRONG, WRONG]
    assert [(result.outcome, result.is_strict) for result in results.of("other", NEW, "layers")] == [
        (RIGHT, True), (RIGHT, False), (RIGHT, True), ("engine dies", False), (WRONG, False), (WRONG, False),
    ]  # fmt: skip
    assert [result.outcome for result in results.of("t2n", NEW, "layers")] == [RIGHT, RIGHT, "refused"]


def test_results_of_a_suite_take_the_place_of_its_earlier_ones(folder, results):
    before = (folder / "operators.jsonl.gz").read_bytes()
    session, _ = results.sessions
    keep_results(folder, msgspec.structs.replace(session, seconds=9), results.of("other", NEW, "layers"))
    again = read_results(folder, ["layers", "operators"])
    assert [each.seconds for each in again.sessions] == [9, 0]
    assert again.all == [*results.of("other", NEW, "layers"), *(r for r in results.all if r.suite == "operators")]
    assert (folder / "operators.jsonl.gz").read_bytes() == before


def test_the_totals_of_another_page_link_the_causes(results):
    lines = totals(results, ["other"], NEW, "../league/").splitlines()
    assert "| `other` | 12 | 6 | 4 | 0 | [4](../league/causes.md#other) | 0 | [2](../league/causes.md#other) |" in lines


def test_pages_have_the_counts_and_their_causes(results, tmp_path):
    write_pages(results, ["t2n", "other"], tmp_path / "pages")
    pages = {path.name: path.read_text("utf-8") for path in (tmp_path / "pages").iterdir()}
    assert set(pages) == {"index.md", "operators.md", "architectures.md", "causes.md"}
    lines = pages["index.md"].splitlines()
    assert "| `t2n` | 6 | 4 | 4 | [2](causes.md#t2n) | 0 | 0 | 0 |" in lines
    assert "| `other` | 12 | 6 | 4 | 0 | [4](causes.md#other) | 0 | [2](causes.md#other) |" in lines
    assert "| `other` | 0.0% / 0.0% | 50.0% / 33.3% |" in lines
    assert (
        "| [layers](results/layers.jsonl.gz) | 6 | [2 / 2](causes.md#t2n-layers) | [3 / 2](causes.md#other-layers) |"
        in lines
    )
    assert "| `other` | 4 | 3.00 | 0.50 | 2.00 |" in lines, "runs count at the same sizes"
    assert "| `other` | 2 | 2 | 0 |" in lines, "who is wrong"
    assert "| `other` | 4 | 4 | 2 |" in lines
    assert "| layers | `test_c` | refused | `other` |" in lines
    assert "32 cells in 1 h 2 min, 2026-01-02, on EPYC, 2 cores; Python 3.11.7, torch 2.13.0; other 3.1." in lines
    operators = pages["operators.md"]
    assert "2 of 7 are right for all exporters by both profiles" in operators
    assert "`test_a`" not in operators, "it is right for all"
    assert "| `test_c` | refused | not run |" in operators
    assert "| `test_b` | right | right, not strict |" in operators
    assert "| `test_d` | not run | engine dies |" in operators
    assert pages["architectures.md"].endswith("\nThis suite has not run.\n")
    causes = pages["causes.md"]
    assert r"| other values: `mismatch: \| of test_b in 7.onnx` | `test_b` | 1 | 0 | 0 |" in causes
    assert r"| other values: `mismatch: \| of test_1 in 7.onnx` | `test_1` | 0 | 2 | 0 |" in causes
    assert "| cause | a case | 0.21.19 | 0.22.4 | onnxruntime 1.32.0 |" in causes
    assert "### t2n layers" in causes
