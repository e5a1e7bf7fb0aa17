"""Runs of a bundle: spread over processes, in parts, cut off and taken up again, always with the same records."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_t2n.cli import main
from pytest_t2n.records.file import read_records
from pytest_t2n.records.index import completeness_of
from tests.plugin.judging.bundles import (
    HANGS,
    ON_LINUX,
    BundleFolder,
    cells,
    evidence,
    processes_with,
    records,
    start,
    wait_for_cells,
    words,
)
from tests.releases import RECENT

ENGINES_IN_CACHE = ("0.21.19", RECENT)

BOTH = f"0.21.19,{RECENT}"


@pytest.fixture
def bundle(tmp_path):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(12):
        made.add(f"n{number}", ("x * 2.0", "x * 2.01", "x + x", "nothing(x)")[number % 4], "0.21.19")
    made.close()
    return made.folder


def test_any_number_of_processes_leaves_the_same_records(bundle, tmp_path, capsys):
    for jobs in ("1", "3"):
        assert main(words(bundle, "--report", str(tmp_path / jobs), "-j", jobs, engines=BOTH)) == 1
    assert evidence(tmp_path / "1") == evidence(tmp_path / "3")
    results = cells(tmp_path / "3")
    assert list(results)[:4] == ["n0@0.21.19", f"n0@{RECENT}", "n1@0.21.19", f"n1@{RECENT}"]
    assert [cell["status"] for cell in results.values()][:8:2] == ["pass", "mismatch", "pass", "error"]
    assert completeness_of(read_records(tmp_path / "3" / "matrix.jsonl")).notice == ""
    assert "12 of 24 cells are not as expected" in capsys.readouterr().out


@pytest.mark.parametrize("given", [("-",), ("script.py",)])
def test_the_program_that_calls_is_not_run_again_by_each_process(bundle, tmp_path, given):
    arguments = words(bundle, "-j", "2", "--case", "*n*")
    call = f"print('called')\nfrom pytest_t2n.cli import main\nmain({arguments!r})\n"
    (tmp_path / "script.py").write_text(call)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, *given]
    more = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 100, "check": True}
    done = subprocess.run(command, input=call, env=environment, **more)
    assert done.stdout.count("called") == 1
    assert "6 of 12 cells are not as expected" in done.stdout
    assert "Traceback" not in done.stderr


def test_shards_by_durations_are_one_run(bundle, tmp_path, capsys):
    assert main(words(bundle, "--report", str(tmp_path / "whole"), engines=BOTH)) == 1
    for part in ("1/3", "2/3", "3/3"):
        options = ("--shard", part, "--durations", str(tmp_path / "whole"), "--report", str(tmp_path / part[0]))
        main(words(bundle, *options, engines=BOTH))
    parts = [len(cells(tmp_path / part)) for part in "123"]
    assert sum(parts) == 24
    assert min(parts) > 0
    assert main(["matrix", "merge", *(str(tmp_path / part) for part in "123"), "-o", str(tmp_path / "merged")]) == 0
    assert evidence(tmp_path / "merged") == evidence(tmp_path / "whole")
    capsys.readouterr()
    assert main(["matrix", "merge", *(str(tmp_path / part) for part in "12"), "-o", str(tmp_path / "no")]) == 1
    assert "shards are missing: 3/3" in capsys.readouterr().err


@ON_LINUX
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_run_that_is_cut_goes_on_where_it_was(tmp_path, name, capsys):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(8):
        made.add(f"n{number}", HANGS if number == 5 else "x * 2.0" if number % 2 else "x * 2.01")
    made.close()
    report, mark = tmp_path / "site", f"MARK={tmp_path}"
    arguments = words(made.folder, "--report", str(report), timeout=4)
    process = start(*arguments, env={**os.environ, "MARK": str(tmp_path)})
    wait_for_cells(report, 5)
    assert len(processes_with(mark)) >= 3, "the command, a process that judges, an engine"
    sent = time.monotonic()
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert time.monotonic() - sent < (3 if name == "SIGINT" else 1)
    for _ in range(300):
        if not processes_with(mark):
            break
        time.sleep(0.02)
    assert processes_with(mark) == {}
    before = cells(report)
    assert sum(cell["status"] != "not_run" for cell in before.values()) == 5
    if name == "SIGINT":
        assert (process.returncode, len(before), records(report)[-1]["stopped"]) == (130, 8, "interrupted")
    assert main([*arguments, "--resume"]) == 1
    assert "--resume: 5 cells kept" in capsys.readouterr().out
    after = cells(report)
    assert list(after) == [f"n{number}@{RECENT}" for number in range(8)]
    assert after[f"n5@{RECENT}"]["status"] == "timeout"
    finished_cells = [name for name, cell in before.items() if cell["status"] != "not_run"]
    assert {name: after[name] for name in finished_cells} == {name: before[name] for name in finished_cells}, (
        "with their times"
    )
    assert [line["type"] for line in records(report) if line["type"] in ("run", "plan", "end")] == [
        "run",
        "plan",
        "end",
    ]
    assert main(words(made.folder, "--report", str(tmp_path / "whole"), timeout=4)) == 1
    assert evidence(report) == evidence(tmp_path / "whole")


def test_another_bundle_is_not_taken_up(bundle, tmp_path, capsys):
    report = str(tmp_path / "site")
    assert main(words(bundle, "--report", report, "--resume", engines=BOTH)) == 1, "there is nothing yet"
    other = BundleFolder(tmp_path / "other")
    for number in range(12):
        other.add(f"n{number}", "x * 2.0", "0.21.19")
    other.close()
    capsys.readouterr()
    assert main(words(other.folder, "--report", report, "--resume", engines=BOTH)) == 1
    assert "is from another bundle, other cases or another shard; start again" in capsys.readouterr().err
    assert main(words(bundle, "--report", report, "--resume", "--shard", "1/2", engines=BOTH)) == 1
    assert "start again" in capsys.readouterr().err
    assert main(words(bundle, "--resume")) == 1
    assert "--resume: name the directory" in capsys.readouterr().err


@ON_LINUX
def test_a_process_that_is_killed_costs_no_cell(tmp_path):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(40):
        made.add(f"n{number}", HANGS if number % 10 == 5 else "x * 2.0")
    made.close()
    report = tmp_path / "site"
    process = start(
        *words(made.folder, "--report", str(report), "-j", "2", timeout=1), env={**os.environ, "MARK": str(tmp_path)}
    )
    killed = 0
    while process.poll() is None and killed < 3:
        wait_for_cells(report, 4 + 8 * killed)
        processes = processes_with(f"MARK={tmp_path}")
        judges = [pid for pid, command in processes.items() if "forkserver" in command and _is_judge(pid, processes)]
        for pid in judges[:1]:
            os.kill(pid, signal.SIGKILL)
            killed += 1
    assert process.wait(60) == 1
    assert killed == 3
    statuses = [cell["status"] for cell in cells(report).values()]
    assert statuses == ["timeout" if number % 10 == 5 else "pass" for number in range(40)]


def _is_judge(pid, processes):
    """Whether a process was forked by the server of forks."""
    with open(f"/proc/{pid}/status") as lines:
        parent = int(re.search(r"PPid:\s+(\d+)", lines.read())[1])
    return "forkserver" in processes.get(parent, "")


@ON_LINUX
def test_ctrl_c_ends_a_run_within_a_second_and_keeps_what_is_known(tmp_path):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(6):
        made.add(f"n{number}", HANGS if number == 3 else "x * 2.0")
    made.close()
    spent = []
    for turn in range(3):  # the best of three: other tests have the processors, too
        report = tmp_path / f"site-{turn}"
        process = start(*words(made.folder, "--report", str(report), timeout=60))
        wait_for_cells(report, 3)
        time.sleep(0.3)  # the engine hangs
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        spent.append(time.monotonic() - sent)
        assert process.returncode == 130
        statuses = [cell["status"] for cell in cells(report).values()]
        assert statuses == ["pass"] * 3 + ["not_run"] * 3
        assert (report / "index.html").exists()
    share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # how many wait for each processor
    assert min(spent) < share, spent
