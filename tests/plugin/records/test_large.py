"""Large files of records: commands read them through an index, which takes little memory for a cell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.lab.measure.records.enlarge import enlarge
from pytest_t2n.cli import main
from pytest_t2n.records.file import encode, read_records, write_records
from pytest_t2n.records.index import completeness_of, open_index
from pytest_t2n.records.schema import CellLine, PlanLine
from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import many_records

SMALL, LARGE = 4_000, 40_000
MOST = 200
"""MB of a command on either file."""
GROWTH = 45
"""MB that a command on the large file may need more; records in memory took 5 kB a cell, 180 MB here."""
MEASURED = """
import sys
from pytest_t2n.cli import main
status = main(["matrix", *sys.argv[1:]])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(f"peak {peak}", file=sys.stderr)
"""
COMMANDS = {
    "merge": ["merge", "FILE", "-o", "OUT.jsonl"],
    "diff": ["diff", "FILE", "FILE"],
    "diff of engines": ["diff", "FILE", "--engines", "tract 0.19.0", "tract 0.23.11"],
    "html": ["html", "FILE", "-o", "OUT"],
    "query": ["query", "FILE", "--status", "crash", "--json"],
    "md": ["md", "FILE", "--baseline", "FILE"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A small and a large file of records on 12 engines."""
    folder = tmp_path_factory.mktemp("large")
    write_records(folder / "template.jsonl", many_records(500))
    paths = {}
    for cells in (SMALL, LARGE):
        paths[cells] = folder / f"{cells}.jsonl"
        write_records(paths[cells], enlarge(folder / "template.jsonl", cells, 12))
    return paths


def peak(command: str, file: Path, folder: Path) -> float:
    """MB of a command in a process of its own."""
    words = {"FILE": file, "OUT": folder / "out", "OUT.jsonl": folder / "out.jsonl"}
    arguments = [str(words.get(word, word)) for word in COMMANDS[command]]
    run = [sys.executable, "-c", MEASURED, *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return int(done.stderr.rpartition("peak ")[2]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_cell_takes_little_memory(files, tmp_path, command):
    small, large = (peak(command, files[cells], tmp_path) for cells in (SMALL, LARGE))
    assert large < MOST
    assert large - small < GROWTH


def test_the_page_is_the_same_however_the_records_were_read(tmp_path):
    records = many_records(1_000)
    write_records(tmp_path / "matrix.jsonl", records)
    write_report(records, tmp_path / "memory")
    assert main(["matrix", "html", str(tmp_path), "-o", str(tmp_path / "index")]) == 0
    for file in sorted((tmp_path / "memory").iterdir()):
        assert file.read_bytes() == (tmp_path / "index" / file.name).read_bytes()


def test_a_merged_file_is_the_file_that_was_merged(files, tmp_path):
    path = files[SMALL]
    assert main(["matrix", "merge", str(path), "-o", str(tmp_path / "merged.jsonl")]) == 0
    assert (tmp_path / "merged.jsonl").read_bytes() == path.read_bytes()


def test_an_index_knows_what_is_missing(tmp_path):
    records = many_records(50)
    cells = [record for record in records if isinstance(record, CellLine)]
    remaining = [record for record in records if record is not cells[7]]
    write_records(tmp_path / "matrix.jsonl", remaining)
    with open_index(tmp_path) as file:
        state = file.completeness
        assert (state.notice, state.found, state.planned) == ("incomplete: 49 of 50 cells", 49, 50)
        assert state.notice == completeness_of(read_records(tmp_path / "matrix.jsonl")).notice
        matrix = Matrix.of_index(file)
        by_nodeid = {cell.nodeid: cell for cell in matrix.cells}
        assert (by_nodeid[cells[7].nodeid].status, by_nodeid[cells[7].nodeid].error.error_class) == (
            "not_run",
            "NoRecord",
        )
        assert len(by_nodeid) == 50
        (row,) = matrix.rows.pick([cells[7].case])
        assert cells[7].nodeid in {cell.nodeid for cell in row.present}


def test_a_plan_that_is_none_is_named_with_its_line(tmp_path, capsys):
    records = many_records(10)
    lines = [encode(record) for record in records]
    index = next(number for number, record in enumerate(records) if isinstance(record, PlanLine))
    lines[index] = lines[index].replace('["', '[1, "', 1)
    path = tmp_path / "matrix.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    assert main(["matrix", "md", str(path)]) == 1
    assert f"error: {path}:{index + 1}: Expected `str`, got `int`" in capsys.readouterr().err
