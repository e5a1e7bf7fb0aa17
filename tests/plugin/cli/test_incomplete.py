"""Files that are not whole: each subcommand says so in what it makes, and fails unless that is meant."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest

from pytest_t2n.cli import main
from pytest_t2n.records.file import encode, read_records
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.schema import SCHEMA, EndLine, PlanLine, RunLine, cells_of
from tests.plugin.cli.test_matrix import NEW, OLD
from tests.plugin.report.many_records import whole
from tests.plugin.report.test_report import cell, run_line

CELLS = [cell(f"a.py::test_a[{n}]", engine) for n in range(3) for engine in (OLD, NEW)]
WHOLE = whole([run_line(OLD, NEW), *CELLS])
RUN, PLAN, *_, END = WHOLE


def write(path, *records):
    path.write_text("".join(f"{encode(record)}\n" for record in records))
    return str(path)


@pytest.mark.parametrize(
    ("records", "notice"),
    [
        (WHOLE, ""),
        ([RUN, PLAN, *CELLS[:2], END], "incomplete: 2 of 6 cells"),
        ([RUN, PLAN, *CELLS[:2]], "incomplete: 2 of 6 cells"),
        ([RUN, PLAN], "incomplete: 0 of 6 cells"),
        ([RUN, PLAN, *CELLS], "incomplete: 6 of 6 cells, and the session did not end"),
        ([*WHOLE, CELLS[0]], "incomplete: 6 of 6 cells, and the session did not end"),
        ([RUN, *CELLS, END], "incomplete: 6 cells, and no plan states how many there should be"),
        (CELLS, "incomplete: 6 cells, and no plan states how many there should be"),
        ([], "incomplete: 0 cells, and no plan states how many there should be"),
        ([RUN, PLAN, cell("b", OLD), *CELLS[1:], END], "incomplete: 5 of 6 cells"),
        (whole([*CELLS, cell("b", OLD, "not_run")]), "1 of 7 cells did not run"),
        (
            whole([*CELLS, cell("b", OLD, "not_run")], stopped="interrupted"),
            "stopped early: 1 of 7 cells did not run: interrupted",
        ),
        (whole(CELLS, stopped="stopping after 1 failures"), ""),
    ],
)
def test_notices(records, notice):
    state = completeness_of(records)
    assert state.notice.startswith(notice.removesuffix("*")) if notice.endswith("*") else state.notice == notice
    assert state.is_complete == (not notice.startswith("incomplete"))


def test_cells_without_a_record_are_in_every_product_as_not_run(tmp_path, capsys):
    path = write(tmp_path / "matrix.jsonl", RUN, PLAN, *CELLS[:3])
    words = "incomplete: 3 of 6 cells"
    arguments = (path, "--allow-incomplete")
    main(["matrix", "csv", *arguments])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["status"] for row in rows] == ["pass"] * 3 + ["not_run"] * 3
    assert {row["incomplete"] for row in rows} == {words}
    main(["matrix", "ctrf", *arguments])
    results = json.loads(capsys.readouterr().out)["results"]
    assert (results["summary"]["passed"], results["summary"]["other"]) == (3, 3)
    assert results["extra"] == {"notice": words}
    main(["matrix", "badge", *arguments, "-o", str(tmp_path)])
    badge = json.loads((tmp_path / f"badge-tract-{NEW}.json").read_text())
    assert (badge["message"], badge["color"]) == (words, "lightgrey")
    capsys.readouterr()
    main(["matrix", "query", *arguments, "--status", "not_run", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["nodeid"] for line in lines] == [cell.nodeid for cell in CELLS[3:]]
    assert [line["case"] for line in lines] == [cell.case for cell in CELLS[3:]]
    later = write(tmp_path / "later.jsonl", *WHOLE)
    assert main(["matrix", "diff", later, path, "--allow-incomplete"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{words}\n")
    assert "3 changes, 3 for the worse" in err


def test_merged_files_are_whole_if_all_are(tmp_path, capsys):
    halves = [whole([RUN, *CELLS[:3]]), whole([RUN, *CELLS[3:]], stopped="interrupted")]
    first, second = (write(tmp_path / f"{n}.jsonl", *half) for n, half in enumerate(halves))
    merged = tmp_path / "merged.jsonl"
    assert main(["matrix", "merge", first, second, "-o", str(merged)]) == 0
    records = read_records(merged)
    assert completeness_of(records).is_complete
    assert [type(record) for record in records[:2]] == [RunLine, PlanLine]
    assert records[-1] == EndLine(SCHEMA, END.ended, "interrupted")
    assert cells_of(records) == CELLS
    merged.unlink()

    killed = write(tmp_path / "killed.jsonl", *halves[0][:-2])
    assert main(["matrix", "merge", killed, second, "-o", str(merged)]) == 1
    assert f"{killed}: incomplete: 2 of 3 cells" in capsys.readouterr().err
    assert not merged.exists()
    assert main(["matrix", "merge", killed, second, "-o", str(merged), "--allow-incomplete"]) == 0
    assert completeness_of(read_records(merged)).notice == "incomplete: 5 of 6 cells"
    unknown = write(tmp_path / "unknown.jsonl", RUN, *CELLS[:3])
    assert main(["matrix", "merge", unknown, second, "-o", str(merged), "--allow-incomplete"]) == 0
    assert completeness_of(read_records(merged)).planned is None


def test_expectations_are_not_rewritten_from_half_a_file(tmp_path, capsys):
    path = write(tmp_path / "matrix.jsonl", RUN, PLAN, *CELLS[:3])
    expectations = tmp_path / "known.toml"
    assert main(["matrix", "accept", path, "--expect", str(expectations)]) == 1
    assert "error: incomplete: 3 of 6 cells; --allow-incomplete accepts it" in capsys.readouterr().err
    assert not expectations.exists()


@pytest.mark.parametrize("command", ["md", "csv", "ctrf", "query", "html", "badge", "merge"])
def test_a_cell_that_stands_twice_is_an_error_in_every_reader(tmp_path, capsys, command):
    path = write(tmp_path / "matrix.jsonl", RUN, PLAN, cell("a.py::test_a[0]", OLD, "mismatch"), *CELLS, END)
    output = ["-o", str(tmp_path / "out")] if command in ("html", "badge", "merge") else []
    assert main(["matrix", command, path, *output]) != 0
    assert "matrix.jsonl:4: a second record of a.py::test_a[0]" in capsys.readouterr().err


def test_runs_of_different_sources_do_not_merge(tmp_path, capsys):
    runs = [
        whole(
            [
                msgspec.structs.replace(run_line(engine), source=engine),
                *(cell for cell in CELLS if cell.label == engine),
            ]
        )
        for engine in (OLD, NEW)
    ]
    paths = [write(tmp_path / f"{number}.jsonl", *run) for number, run in enumerate(runs)]
    arguments = ["matrix", "merge", *paths, "-o", str(tmp_path / "merged.jsonl")]
    assert main(arguments) != 0
    assert "different states of the project's Python files" in capsys.readouterr().err
    assert main([*arguments, "--allow-sources"]) == 0
