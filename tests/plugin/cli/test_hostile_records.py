"""Files of records that somebody else wrote: every command reads them, or names the file and the line."""

from __future__ import annotations

import json
import os
import time
from shutil import rmtree

import pytest

from pytest_t2n.cli import main
from tests.each import check_each

RUN = {
    "type": "run", "schema": 1, "started": "2026-11-22T00:00:00+00:00", "versions": {},
    "engines": [{"target": "tract", "version": "0.21.19", "label": "0.21.19"}],
}  # fmt: skip
COMMANDS = {
    "html": ["html", "FILE", "-o", "OUT"],
    "md": ["md", "FILE"],
    "csv": ["csv", "FILE"],
    "ctrf": ["ctrf", "FILE"],
    "badge": ["badge", "FILE", "-o", "OUT"],
    "query": ["query", "FILE"],
    "merge": ["merge", "FILE", "GOOD", "-o", "OUT.jsonl", "--allow-rerun"],
    "diff": ["diff", "GOOD", "FILE"],
    "accept": ["accept", "FILE", "--expect", "OUT.toml"],
    "annotate": ["annotate", "FILE"],
}


def cell(name, **others):
    return {
        "type": "cell", "schema": 1, "nodeid": f"t.py::t[{name}-tract-0.21.19]", "case": f"t.py::t[{name}]",
        "target": "tract", "version": "0.21.19", "label": "0.21.19", "status": "pass", "stage": "compare", **others,
    }  # fmt: skip


def failing(name, message, **others):
    return cell(name, status="error", stage="run", error={"error_class": "E", "message": message}, **others)


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


CELL = json.dumps(cell("a", facts={"q": "QQ"})).encode()
READ = {
    "numbers of 100 bits": lines(RUN, failing("a", "x", sizes=[{"T": 10**30}], facts={"x": [-(10**30)]})),
    "no run line": lines(cell("a")),
    "the last second": lines({**RUN, "started": "9999-12-31T23:59:59+00:00"}, cell("a")),
    "a version that is none": lines(RUN, failing("a", "x", version="<x>", label="<x>")),
    "a label that leads out": lines(RUN, failing("a", "x", label="../../../ESCAPED"), cell("b", label="a/b\0c")),
    "engines that lead out": lines(
        {**RUN, "engines": [{"target": "../x", "version": "1", "label": "../../ESCAPED"}]}, cell("a")
    ),
    "a long message": lines(RUN, failing("a", "A" * 100_000_000 + "/b" * 1_000_000)),
    "a long name": lines(RUN, cell("n" * 10_000_000)),
    "names that are patterns": lines(RUN, *(failing(name, name) for name in ("*", 'a"\n[[expect]]\ncase="*"', "'''"))),
    "nothing": b"",
    "many engines": lines(
        {**RUN, "engines": [{"target": "tract", "version": f"0.1.{n}", "label": f"0.1.{n}"} for n in range(3000)]},
        *(cell(str(n), version=f"0.1.{n}", label=f"0.1.{n}") for n in range(3000)),
    ),
}
REFUSED = {
    "garbage": (os.urandom(3000).replace(b"\n", b"") + b"\n", 1),
    "infinite times": (lines(RUN, cell("a", times={"run": 1e308, "load": 1e308})), 2),
    "a start that is no time": (lines({**RUN, "started": "<b>yesterday"}, cell("a")), 1),
    "times below zero": (lines(RUN, cell("a", times={"run": -5.0})), 2),
    "sizes below zero": (lines(RUN, cell("a", archive_bytes=-5)), 2),
    "zeros": (lines(RUN) + b"\0\0\0\n", 2),
    "not UTF-8": (lines(RUN) + CELL.replace(b"QQ", b"\xff\xfe") + b"\n", 2),
    "types": (lines(RUN, cell("a", schema="x")), 2),
    "types of times": (lines(RUN, cell("b"), cell("a", times={"a": "b"})), 3),
    "a schema below the first": (lines(RUN, cell("a", schema=-5)), 2),
    "a newer schema": (lines(RUN, cell("a", schema=99)), 2),
    "deep": (lines(RUN) + CELL.replace(b'"QQ"', b"[" * 300_000 + b"]" * 300_000) + b"\n", 2),
    "a large number": (lines(RUN) + CELL.replace(b'"QQ"', b"9" * 5000) + b"\n", 2),
    "an endless line": (lines(RUN) + b'{"type": "cell", "z": "' + b"z" * (65 << 20) + b'"}\n', 2),
}


def called(command, folder, data, capsys):
    """The exit status of a command, what it printed, and the seconds that it took."""
    (folder / "file.jsonl").write_bytes(data)
    (folder / "good.jsonl").write_bytes(lines(RUN, cell("good")))
    words = {"FILE": folder / "file.jsonl", "GOOD": folder / "good.jsonl", "OUT": folder / "out"}
    arguments = [str(words.get(word, folder / word if word.startswith("OUT.") else word)) for word in COMMANDS[command]]
    started = time.process_time()
    status = main(["matrix", *arguments, "--allow-incomplete"])
    return status, capsys.readouterr(), time.process_time() - started


@pytest.mark.parametrize("name", READ)
def test_strange_records_are_read(name, tmp_path, monkeypatch, capsys):
    """Those with a long message take ten seconds: each command reads 100 MB."""

    def check(command):
        folder = tmp_path / command / "deep" / "er"
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        status, printed, seconds = called(command, folder, READ[name], capsys)
        assert status in (0, 1)
        if (name, command) == ("many engines", "html"):
            assert "3000 engines are too many for a page" in printed.err
        else:
            assert "error:" not in printed.err or command in ("merge", "diff")
        assert seconds < 20
        assert all(folder in path.parents for path in (tmp_path / command).rglob("*ESCAPED*"))
        rmtree(tmp_path / command)

    check_each(COMMANDS, check)
    assert not list(tmp_path.rglob("*ESCAPED*"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_record_is_named_with_its_line(name, tmp_path, capsys):
    data, line = REFUSED[name]

    def check(command):
        status, printed, seconds = called(command, tmp_path, data, capsys)
        assert (status, seconds < 20) == (1, True)
        assert f"error: {tmp_path / 'file.jsonl'}:{line}: " in printed.err
        assert len(printed.err) < 2000

    check_each(COMMANDS, check)


@pytest.mark.parametrize("command", ["md", "merge", "html"])
def test_a_pipe_is_no_file_of_records(command, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    more = ["-o", str(tmp_path / "out")] if command != "md" else []
    assert main(["matrix", command, str(tmp_path / "pipe"), *more]) == 1
    assert f"error: {tmp_path / 'pipe'} is not a regular file" in capsys.readouterr().err
