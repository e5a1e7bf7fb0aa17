"""Shards: equal parts, all versions of a case together, and merged the same as the unsharded run."""

from __future__ import annotations

import json

import pytest

from pytest_t2n.cli import main
from pytest_t2n.records.file import encode, read_records
from pytest_t2n.records.schema import PlanLine

MODELS = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(12))
    def test_model(number):
        return ["pass", "crash@0.22.4", "mismatch"][number % 3], (1,)

    def test_other():
        pass
"""


def untimed(path):
    lines = [json.loads(line) for line in (path / "matrix.jsonl").read_text().splitlines()]
    # what a process reads is in the record of one of its cells
    cells = [{**line, "times": None, "reads": None} for line in lines if line["type"] == "cell"]
    return sorted(cells, key=lambda cell: cell["nodeid"])


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_merged_shards_equal_the_unsharded_run(suite, where, capsys):
    suite.pytester.makepyfile(MODELS)
    suite.run("--t2n-report=whole")
    for index in (1, 2, 3):
        suite.run(f"--t2n-shard={index}/3", f"--t2n-report=part{index}", mode=where)
    parts = [suite.path / f"part{index}" for index in (1, 2, 3)]
    node_ids = [{cell["nodeid"] for cell in untimed(part)} for part in parts]
    assert sum(map(len, node_ids)) == len(set.union(*node_ids)) == 36
    assert [len(part) for part in node_ids] == [12, 12, 12]
    cases = [{nodeid.partition("-tract")[0] for nodeid in part} for part in node_ids]
    assert sum(map(len, cases)) == 12
    assert main(["matrix", "merge", *map(str, parts), "-o", str(suite.path / "merged")]) == 0
    assert untimed(suite.path / "merged") == untimed(suite.path / "whole")
    full_run, merged = (read_records(suite.path / name / "matrix.jsonl")[0] for name in ("whole", "merged"))
    assert (full_run.engines, full_run.versions) == (merged.engines, merged.versions)
    assert not any("--t2n-shard" in argument for argument in merged.arguments)
    assert (suite.path / "merged" / "index.html").exists()

    for chosen, words in (
        (parts[:2], "shards are missing: 3/3"),
        ([*parts[:2], suite.path / "whole"], "1 beside files of shards, but not a shard"),
    ):
        assert main(["matrix", "merge", *map(str, chosen), "-o", str(suite.path / "no")]) == 1
        assert words in capsys.readouterr().err
    assert not (suite.path / "no").exists()


def test_damaged_sets_of_shards_are_named(suite, capsys):
    suite.pytester.makepyfile(MODELS)
    for index in (1, 2):
        suite.run(f"--t2n-shard={index}/2", f"--t2n-report=part{index}", engines="0.23")
    suite.run("--t2n-shard=2/2", "--t2n-report=other", engines="0.22")
    first, second = (read_records(suite.path / f"part{index}" / "matrix.jsonl") for index in (1, 2))
    assert sum(isinstance(line, PlanLine) for line in first) == 1

    def merge(*files):
        names = []
        for number, lines in enumerate(files):
            path = suite.path / f"try{number}.jsonl"
            path.write_text("".join(f"{encode(line)}\n" for line in lines))
            names.append(str(path))
        status = main(["matrix", "merge", *names, "-o", str(suite.path / "out.jsonl")])
        return status, capsys.readouterr().err

    assert merge(first, second)[0] == 0
    *cells, end = second
    status, text = merge(first, [*cells[:-1], end])
    (plan,) = (line for line in second if isinstance(line, PlanLine))
    count = sum(map(len, plan.cells.values()))
    assert status == 1
    assert f"incomplete: {count - 1} of {count} cells" in text
    status, text = merge(first, [*cells, first[-2], end])
    assert (status, text.splitlines()[0]) == (1, "error: 1 in more than one file:")
    assert "is there twice" in merge(first, first)[1]
    assert "different plans" in merge(first, read_records(suite.path / "other" / "matrix.jsonl"))[1]


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", ""])
def test_wrong_shards_are_usage_errors(suite, text):
    suite.pytester.makepyfile(MODELS)
    result = suite.run(f"--t2n-shard={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --t2n-shard: '{text}' is not I/N *"])
