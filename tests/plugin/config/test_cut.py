"""The cut of a suite into shards: even, by the durations of an earlier run, equal everywhere, and never a failure."""

from __future__ import annotations

import json
import random
from statistics import fmean

import msgspec
import pytest

from pytest_t2n.cli import main
from pytest_t2n.config.shard import partition
from pytest_t2n.records.file import read_durations, read_records, write_records
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, PlanLine, RunLine
from tests.plugin.conftest import EVERYWHERE

MODELS = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(8))
    def test_model(number):
        return "pass", (1,)

    @pytest.mark.parametrize("number", range(4))
    def test_other(number):
        pass
"""

# fmt: off
SECONDS = (
    0.022, 0.023, 0.024, 0.024, 0.025, 0.025, 0.025, 0.026, 0.026, 0.026, 0.027, 0.027, 0.027, 0.028, 0.028,
    0.028, 0.029, 0.029, 0.029, 0.029, 0.03, 0.03, 0.03, 0.031, 0.031, 0.031, 0.032, 0.032, 0.032, 0.033,
    0.033, 0.034, 0.034, 0.034, 0.035, 0.035, 0.036, 0.036, 0.037, 0.037, 0.038, 0.039, 0.04, 0.041, 0.042,
    0.043, 0.044, 0.046, 0.047, 0.049, 0.05, 0.052, 0.054, 0.056, 0.058, 0.06, 0.063, 0.065, 0.068, 0.07,
    0.074, 0.077, 0.08, 0.084, 0.088, 0.092, 0.098, 0.1, 0.11, 0.12, 0.12, 0.13, 0.13, 0.13, 0.14, 0.15, 0.16,
    0.17, 0.18, 0.21, 0.24, 0.27, 0.3, 0.33, 0.37, 0.4, 0.45, 0.55, 0.7, 0.78, 0.99, 1.2, 1.4, 1.7, 2.3, 3.0,
    3.7, 4.8, 6.4, 12.0,
)
# fmt: on
"""Percentiles of the durations of the 3,600 cases of a published matrix."""


def loads(costs, shards, count):
    totals = [0.0] * count
    for name, index in shards.items():
        totals[index - 1] += costs[name]
    return totals


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
def test_shards_take_equally_long(count):
    costs = {f"case {number}": SECONDS[number % 100] for number in range(700)}
    shard_loads = loads(costs, partition(costs, count), count)
    assert max(shard_loads) / fmean(shard_loads) < 1.005


def test_a_case_longer_than_a_share_is_alone():
    costs = {"long": 9.0} | {f"short {number}": 0.1 for number in range(30)}
    shards = partition(costs, 4)
    assert [name for name, index in shards.items() if index == shards["long"]] == ["long"]
    assert sorted(loads(costs, shards, 4)) == pytest.approx([1.0, 1.0, 1.0, 9.0])


def test_the_order_of_cases_does_not_count():
    costs = [(f"case {number}", float(number % 5)) for number in range(40)]
    shards = partition(dict(costs), 3)
    random.Random(1).shuffle(costs)
    assert partition(dict(costs), 3) == shards


def test_the_emptiest_shard_comes_first():
    assert partition({"a": 1.0, "b": 1.0}, 3, [2.0, 0.0, 1.0]) == {"a": 2, "b": 3}


def test_a_capture_that_engines_share_counts_once(tmp_path):
    def cell(case, label, **times):
        return CellLine(SCHEMA, f"{case}[tract-{label}]", case, "tract", label, label, "pass", "compare", times=times)

    cells = [
        cell("a", "1", capture=0.5, run=0.25),
        cell("a", "2", capture=0.5, run=0.125),
        cell("a", "3"),
        cell("b", "1"),
    ]
    write_records(tmp_path / "matrix.jsonl", cells)
    assert read_durations(tmp_path) == read_durations(tmp_path / "matrix.jsonl") == {"a": 0.875}


def run_shards(suite, count, *arguments, mode="plain", engines="0.22,0.23"):
    """Run each shard; the numbers of the models, and of the other tests, that each ran."""
    parts = []
    for index in range(1, count + 1):
        shard = (f"--t2n-shard={index}/{count}", f"--t2n-report=part{index}", "-v", *arguments)
        result = suite.run(*shard, mode=mode, engines=engines)
        assert result.ret == pytest.ExitCode.OK
        ran = {line.split("::")[1] for line in result.outlines if "PASSED" in line and "::" in line}
        names = {name.partition(" ")[0].partition("-tract")[0].rstrip("]") for name in ran}
        numbers = [
            {int(name.partition("[")[2]) for name in names if name.startswith(kind)} for kind in ("test_m", "test_o")
        ]
        parts.append(numbers)
    return parts


def merge(suite, count, capsys):
    status = main(["matrix", "merge", *(str(suite.path / f"part{index + 1}") for index in range(count)), "-o", "all"])
    return status, capsys.readouterr().err


def test_without_durations_the_cells_and_the_other_tests_are_divided_evenly(suite):
    suite.pytester.makepyfile(MODELS)
    parts = run_shards(suite, 4)
    assert [list(map(len, part)) for part in parts] == [[2, 1]] * 4
    assert set().union(*(part[0] for part in parts)) == set(range(8))


def with_seconds(path, seconds):
    """A file of records in which the model with each number takes so long; others have no times."""
    changed = []
    for line in read_records(path):
        if isinstance(line, CellLine):
            number = int(line.case.partition("[")[2].rstrip("]"))
            share = 0.25 if line.label.startswith("0.22") else 0.75
            times = {"run": seconds[number] * share} if number in seconds else {}
            line = msgspec.structs.replace(line, times=times)
        changed.append(line)
    write_records(path, changed)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_shards_are_cut_by_the_durations_of_an_earlier_run(suite, where, capsys):
    suite.pytester.makepyfile(MODELS)
    suite.run("--t2n-report=last", engines="0.22,0.23")
    with_seconds(suite.path / "last" / "matrix.jsonl", {0: 8.0, 1: 1.0, 2: 5.0, 3: 2.0, 4: 2.0, 5: 1.0})
    parts = run_shards(suite, 2, "--t2n-durations=last", mode=where)
    # 6 and 7 are unknown and count as the median: 8 + 2 + 1, and 5 + 2 + 2 + 2 + 1
    seconds = [8.0, 1.0, 5.0, 2.0, 2.0, 1.0, 2.0, 2.0]
    assert sorted(sum(seconds[number] for number in part[0]) for part in parts) == [11.0, 12.0]
    assert [len(part[1]) for part in parts] == [2, 2]
    assert merge(suite, 2, capsys)[0] == 0
    merged = [json.loads(line) for line in (suite.path / "all" / "matrix.jsonl").read_text().splitlines()]
    assert sum(line["type"] == "cell" for line in merged) == 16
    assert not any("durations" in argument for argument in merged[0]["arguments"])


def test_shards_of_different_durations_do_not_merge(suite, capsys):
    suite.pytester.makepyfile(MODELS)
    suite.run("--t2n-report=last", engines="0.22,0.23")
    last = suite.path / "last" / "matrix.jsonl"
    with_seconds(last, {0: 20.0} | dict.fromkeys(range(1, 8), 1.0))
    run_shards(suite, 2, "--t2n-durations=last")
    assert merge(suite, 2, capsys)[0] == 0
    for others in (["--t2n-durations=last/matrix.jsonl"], []):
        with_seconds(last, {1: 20.0} | dict.fromkeys((0, *range(2, 8)), 1.0))
        suite.run("--t2n-shard=2/2", "--t2n-report=part2", *others, engines="0.22,0.23")
        status, text = merge(suite, 2, capsys)
        assert status == 1
        assert text.startswith("error: these shards were cut in different ways (another file of --t2n-durations): ")
        assert all(f"part{index}" in text for index in (1, 2))


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_shard_goes_on_with_its_own_durations_only(suite, where):
    suite.pytester.makepyfile(MODELS)
    suite.run("--t2n-report=last", engines="0.22,0.23")
    last, part = suite.path / "last" / "matrix.jsonl", suite.path / "part" / "matrix.jsonl"
    with_seconds(last, {0: 20.0} | dict.fromkeys(range(1, 8), 1.0))
    arguments = ("--t2n-shard=2/2", "--t2n-durations=last", "--t2n-report=part")
    suite.run(*arguments, engines="0.22,0.23")
    killed = [line for line in read_records(part) if not isinstance(line, EndLine)][:-3]
    write_records(part, killed)
    with_seconds(last, {1: 20.0} | dict.fromkeys((0, *range(2, 8)), 1.0))
    result = suite.run(*arguments, "--t2n-resume", mode=where, engines="0.22,0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-resume: *the shard is of other tests or --t2n-durations; *"])
    assert completeness_of(read_records(part)).notice == "incomplete: 11 of 14 cells"
    with_seconds(last, {0: 20.0} | dict.fromkeys(range(1, 8), 1.0))
    assert suite.run(*arguments, "--t2n-resume", mode=where, engines="0.22,0.23").ret == pytest.ExitCode.OK
    assert completeness_of(read_records(part)).notice == ""


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_report_may_replace_the_durations(suite, where):
    suite.pytester.makepyfile(MODELS)
    suite.run("--t2n-report=part1", engines="0.22,0.23")
    with_seconds(suite.path / "part1" / "matrix.jsonl", {0: 20.0} | dict.fromkeys(range(1, 8), 1.0))
    arguments = ("--t2n-shard=1/2", "--t2n-durations=part1", "--t2n-report=part1")
    suite.run(*arguments, mode=where, engines="0.22,0.23").assert_outcomes(passed=4, deselected=16 * (where != "n2"))
    lines = read_records(suite.path / "part1" / "matrix.jsonl")
    assert {line.case.partition("::")[2] for line in lines if isinstance(line, CellLine)} == {"test_model[0]"}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_an_empty_shard_is_no_failure(suite, where, capsys):
    suite.pytester.makepyfile(MODELS)
    narrow = ("-k", "model[1- or model[2-")
    for index in (1, 2, 3):
        shard = (f"--t2n-shard={index}/3", f"--t2n-report=part{index}", *narrow)
        result = suite.run(*shard, mode=where, engines="0.22,0.23")
        assert result.ret == pytest.ExitCode.OK
        result.assert_outcomes(passed=2 * (index < 3), deselected=(18 + 2 * (index == 3)) * (where != "n2"))
    result.stdout.fnmatch_lines(["*t2n parity*", "shard 3/3 is empty: all 4 tests are in other shards"])
    empty = read_records(suite.path / "part3" / "matrix.jsonl")
    assert [type(line) for line in empty] == [RunLine, PlanLine, EndLine]
    assert (empty[1].shard, empty[1].cells, completeness_of(empty).notice) == ("3/3", {}, "")
    assert merge(suite, 3, capsys)[0] == 0
    result = suite.run("--t2n-shard=3/3", "--collect-only", "-q", *narrow, engines="0.22,0.23")
    assert result.ret == pytest.ExitCode.OK
    result = suite.run("--t2n-shard=3/3", "-k", "nosuchtest", mode=where, engines="0.22,0.23")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED, "nothing was selected for any shard"


def test_durations_that_cannot_be_used_are_usage_errors(suite):
    suite.pytester.makepyfile(MODELS)
    write_records(suite.path / "empty.jsonl", [])
    (suite.path / "wrong.jsonl").write_text("nonsense\n")
    for arguments, words in (
        (["--t2n-durations=empty.jsonl"], "there are no parts to balance; name one with --t2n-shard=I/N"),
        (["--t2n-durations=empty.jsonl", "--t2n-shard=1/2"], "no cell in *empty.jsonl has times"),
        (["--t2n-durations=wrong.jsonl", "--t2n-shard=1/2"], "*wrong.jsonl:1: *"),
        (["--t2n-durations=none.jsonl", "--t2n-shard=1/2"], "*No such file*none.jsonl*"),
    ):
        result = suite.run(*arguments, "--t2n-report=site")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: --t2n-durations: {words}"])
        assert not (suite.path / "site").exists()
