"""The kernel tiers of a release in a report: the worst is published and named, and what differs comes first."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter

import pytest

from pytest_t2n.records.schema import SCHEMA, CellLine, EngineLine, PlatformLine, RunLine
from pytest_t2n.report.badges import badges
from pytest_t2n.report.columns import ColumnFold
from pytest_t2n.report.exports import matrix_csv, matrix_ctrf
from pytest_t2n.report.markdown import summary_markdown
from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.payload import select_option
from pytest_t2n.report.support import SupportFold, ladder_of, row_support
from pytest_t2n.report.tiers import TierFold, releases_of, worst_of
from pytest_t2n.report.write import write_report
from t2n_core.level import LEVELS
from t2n_core.parity.stage import Status
from tests.plugin.report.many_records import folded, whole
from tests.plugin.report.test_report import payload
from tests.releases import RECENT

TIERS = ("native", "no-avx512", "no-fma")
HERE = PlatformLine("k1", system="linux", machine="x86_64", model="EPYC", features=["avx2", "fma"], cores=2,
                    versions={"numpy": "2"})  # fmt: skip


def engine(version: str, tier: str = "native", **more) -> EngineLine:
    label = version if tier == "native" else f"{version} {tier}"
    return EngineLine("tract", version, label, kind="wheel", tier=tier, runtime="cpu", platform="k1", **more)


def cell(case: str, version: str, tier: str, status: str = "pass", level: str | None = "exact") -> CellLine:
    label = engine(version, tier).label
    nodeid = f"{case}[tract-{label.replace(' ', '-')}]"
    stage = "compare" if status in ("pass", "mismatch") else "run"
    level = level if status == "pass" else None
    more = {"op": "aten::x", "platform": "k1", "times": {"run": 0.1}}
    return CellLine(SCHEMA, nodeid, case, "tract", version, label, status, stage, level, "close", **more)


def matrix_of(*cells: CellLine) -> Matrix:
    engines = [engine("0.22.4"), *(engine(RECENT, tier, sha256="ab") for tier in TIERS)]
    return Matrix.of(whole([RunLine(SCHEMA, "2026-01-02T03:04:05+00:00", engines, platforms=[HERE]), *cells]))


@pytest.fixture
def matrix() -> Matrix:
    """Three cases: equal in all tiers, of another level in one, of another status in two."""
    return matrix_of(
        *(cell("a.py::same", RECENT, tier) for tier in TIERS),
        *(cell("a.py::level", RECENT, tier, level="exact") for tier in TIERS[:2]),
        cell("a.py::level", RECENT, "no-fma", level="approximate"),
        cell("b.py::status", RECENT, "native"),
        cell("b.py::status", RECENT, "no-avx512", "mismatch"),
        cell("b.py::status", RECENT, "no-fma", "crash"),
        *(cell(case, "0.22.4", "native") for case in ("a.py::same", "a.py::level", "b.py::status")),
    )


def test_other_statuses_come_before_other_levels(matrix):
    changes = folded(matrix, TierFold(matrix, 9)).changes
    assert [(change.case, change.status_differs, change.worst) for change in changes] == [
        ("b.py::status", True, "mismatch at compare (no-avx512)"),
        ("a.py::level", False, "pass approximate (no-fma)"),
    ]
    assert changes[0].text == ("native: pass exact, no-avx512: mismatch at compare, no-fma: crash at run")


def test_the_page_begins_with_them(matrix, tmp_path):
    write_report(whole([*matrix.runs, *matrix.cells]), tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert page.index("Other kernels") < page.index("What changed")
    assert page.index("b.py::status") < page.index("a.py::level") < page.index("What changed")
    grid = payload(page)
    assert grid["tiers"] == {
        "a.py::level": f"tract {RECENT}: pass approximate (no-fma)",
        "b.py::status": f"tract {RECENT}: mismatch at compare (no-avx512)",
    }
    assert [column["label"] for column in grid["columns"]] == [
        *("0.22.4", RECENT, f"{RECENT} no-avx512", f"{RECENT} no-fma"),
    ]
    assert grid["columns"][3]["select"] == f"--t2n-tract={RECENT} --t2n-cpu=no-fma"
    assert grid["platforms"]["k1"] == "EPYC, 2 cores, linux x86_64, numpy 2, avx2 fma"
    facts = (tmp_path / "index.html").read_text("utf-8").partition("<dt>platform</dt>")[2].partition("</dd>")[0]
    assert facts.endswith("numpy 2<details><summary>2 instruction sets</summary>avx2 fma</details>")


def test_a_matrix_without_tiers_looks_as_ever(matrix, tmp_path):
    engines = [engine("0.22.4"), engine(RECENT)]
    cells = [cell for cell in matrix.cells if " " not in cell.label]
    plain = Matrix.of([RunLine(SCHEMA, "2026-01-02T03:04:05+00:00", engines), *cells])
    assert [column.title for column in plain.columns] == ["tract 0.22.4", f"tract {RECENT}"]
    write_report([*plain.runs, *plain.cells], tmp_path)
    assert "Other kernels" not in (tmp_path / "index.html").read_text()
    assert "kernels" not in summary_markdown(plain)
    assert set(badges(plain)) == {"badge-tract-0.22.4.json", f"badge-tract-{RECENT}.json"}


def test_the_badge_of_a_release_counts_its_worst_tier(matrix):
    messages = {name: json.loads(text)["message"] for name, text in badges(matrix).items()}
    assert messages == {
        "badge-tract-0.22.4.json": "3/3 pass",
        f"badge-tract-{RECENT}.json": "2/3 pass",
        f"badge-tract-{RECENT}_no-avx512.json": "2/3 pass",
        f"badge-tract-{RECENT}_no-fma.json": "2/3 pass",
    }


def test_what_works_in_a_release_works_in_all_its_tiers(matrix):
    texts = {row.case: row_support(matrix, row, ladder_of(matrix)) for row in matrix.rows}
    assert texts == {"a.py::same": "all", "a.py::level": "all", "b.py::status": "until 0.22.4"}
    (support,) = folded(matrix, SupportFold(matrix)).support()
    assert support.text == f"until 0.22.4, partly {RECENT} (2 of 3)"


def test_times_are_those_of_the_release_before(matrix):
    columns = folded(matrix, ColumnFold(matrix)).columns()
    ratios = [column.latency.ratio if column.latency else None for column in columns]
    assert ratios[0] is None
    assert all(ratio == 1.0 for ratio in ratios[1:])


def test_other_formats_say_tier_worst_and_platform(matrix):
    rows = list(csv.DictReader(io.StringIO(matrix_csv(matrix))))
    rows_by_cell = {(row["case"], row["label"]): row for row in rows}
    row = rows_by_cell["a.py::level", RECENT]
    assert (row["level"], row["tier"], row["runtime"]) == ("exact", "native", "cpu")
    assert (row["worst_of_tiers"], row["platform"]) == ("pass approximate (no-fma)", "k1")
    assert rows_by_cell["a.py::level", "0.22.4"]["worst_of_tiers"] == "pass exact"
    results = json.loads(matrix_ctrf(matrix))["results"]
    assert results["environment"]["extra"]["platforms"][0]["model"] == "EPYC"
    assert {test["extra"]["platform"] for test in results["tests"]} == {"k1"}
    assert Counter(tag for test in results["tests"] for tag in test["tags"])[f"tract {RECENT} no-fma"] == 3
    assert "With other kernels of the same release: 1 have another status, 1 only another level" in summary_markdown(
        matrix
    )


def test_options_that_select_an_engine():
    cuda = EngineLine("tract", RECENT, f"{RECENT} cuda", kind="wheel", tier="native", runtime="cuda")
    assert select_option(cuda) == f"--t2n-tract={RECENT} --t2n-runtime=cuda"
    tract = EngineLine("tract", "0.22.4", "0.22.4", kind="wheel", tier="no-fma")
    product = EngineLine("product", RECENT, RECENT, kind="wheel", tier="native")
    own_engine, flat, khronos = (
        EngineLine(name, version, version) for name, version in (("own", "1.2"), ("flat", "1.0"), ("khronos", "1.0"))
    )
    assert select_option(product, [own_engine, tract, product]) == f"--t2n-tract={RECENT}"
    assert select_option(own_engine, [own_engine, product, tract, khronos]) == "--t2n-tract=0.22.4 --t2n-cpu=no-fma"
    assert select_option(own_engine, [own_engine, khronos]) == "--t2n-khronos"
    assert select_option(flat, [tract, khronos, flat]) == "--t2n-khronos"
    assert select_option(own_engine, [own_engine]) == ""
    assert [release.name for release in releases_of([engine(RECENT), engine(RECENT, "no-fma"), cuda])] == [
        f"tract {RECENT}",
        f"tract {RECENT} cuda",
    ]


def test_the_worst_is_at_least_as_bad_as_any():
    rng = random.Random(3)
    severity = ["mismatch", "crash", "timeout", "oom", "error", "unsupported", "not_run", "weak", "skip", "pass"]
    assert {status.value for status in Status} == set(severity)
    levels = [level.value for level in LEVELS]
    for _ in range(2000):
        cells = [
            cell("a", RECENT, tier, rng.choice(["pass", rng.choice(severity)]), rng.choice(levels)) for tier in TIERS
        ]
        worst = worst_of(cells)
        assert severity.index(worst.status) == min(severity.index(tier_cell.status) for tier_cell in cells)
        if worst.status == "pass":
            assert levels.index(worst.level) == max(levels.index(tier_cell.level) for tier_cell in cells)
    assert worst_of([None]) is None
