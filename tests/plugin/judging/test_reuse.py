"""Results of earlier runs: taken where all that decides about them is the same, and nowhere else."""

from __future__ import annotations

import importlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pytest_t2n.cli import main
from pytest_t2n.cli.judging.reuse import is_lasting
from pytest_t2n.cli.judging.store import ResultStore
from pytest_t2n.records.schema import SCHEMA, CellLine, ErrorLine
from tests.plugin.judging.bundles import (
    HANGS,
    BundleFolder,
    arrays,
    cells,
    evidence,
    in_this_process,
    words,
)
from tests.releases import RECENT

ENGINES_IN_CACHE = ("0.21.19", RECENT)

GRAPHS = {"right": "x * 2.0", "wrong": "x * 2.01", "refused": "nothing(x)"}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engines that were given a cell."""
    engines, command = (importlib.import_module(name) for name in ("t2n_core.engine", "pytest_t2n.cli.run"))
    versions: list[str] = []
    plain = engines.engine_for

    def counted(resolved):
        versions.append(resolved.version)
        return plain(resolved)

    monkeypatch.setattr(engines, "engine_for", counted)
    monkeypatch.setattr(command, "local_workers", in_this_process)
    return versions


def made(folder: Path, graphs: dict[str, str] = GRAPHS, **others) -> BundleFolder:
    """A bundle with a case for each graph."""
    bundle = BundleFolder(folder)
    for name, graph in graphs.items():
        bundle.add(name, graph, **others)
    bundle.close()
    return bundle


def run(bundle: Path, tmp_path: Path, report: str, *given: str, **more) -> dict[str, dict]:
    """The cells of a run that reuses results."""
    main(words(bundle, "--report", str(tmp_path / report), "--reuse", str(tmp_path / "known"), *given, **more))
    return cells(tmp_path / report)


def test_the_second_run_judges_nothing_and_leaves_the_same_records(tmp_path, started, capsys):
    bundle = made(tmp_path / "bundle")
    first = run(bundle.folder, tmp_path, "first")
    assert len(started) == 3
    assert not any(cell.get("reused") for cell in first.values())
    output = capsys.readouterr().out
    second = run(bundle.folder, tmp_path, "second")
    assert len(started) == 3, "no engine was asked"
    assert [cell["status"] for cell in second.values()] == ["pass", "mismatch", "error"]
    assert all(cell.pop("reused") for cell in second.values()), "each says so"
    assert second == first, "with times"
    lines = [[line for line in evidence(tmp_path / name) if line["type"] == "graph"] for name in ("first", "second")]
    assert lines[0] == lines[1]
    again = capsys.readouterr().out
    assert again.replace("--reuse: 3 of 3 cells", "--reuse: 0 of 3 cells") == output


def test_the_same_archive_in_another_case_is_known(tmp_path, started):
    run(made(tmp_path / "one").folder, tmp_path, "first")
    other = made(tmp_path / "two", {"renamed": "x * 2.0"})
    results = run(other.folder, tmp_path, "second")
    assert len(started) == 3
    assert results[f"renamed@{RECENT}"]["nodeid"] == f"test_g.py::test_g[renamed-tract-{RECENT}]"
    assert results[f"renamed@{RECENT}"]["reused"]


@pytest.mark.parametrize(
    ("others", "given"),
    [
        ({}, {"engines": "0.21.19"}),
        ({}, {"more": ["--memory", "3G"]}),
        ({"tolerance": "exact"}, {}),
        ({"levels": {"y": "close"}}, {}),
        ({"output_names": ["z"]}, {}),
        ({"constant_outputs": ["y"]}, {}),
    ],
    ids=["engine", "memory", "level", "levels", "names", "constant"],
)
def test_anything_that_decides_makes_another_result(tmp_path, started, others, given):
    run(made(tmp_path / "one", {"right": "x * 2.0"}).folder, tmp_path, "first")
    changed = made(tmp_path / "two", {"right": "x * 2.0"}, **others)
    more = given.get("more", [])
    results = run(changed.folder, tmp_path, "second", *more, **{n: v for n, v in given.items() if n != "more"})
    assert len(started) == 2
    assert not any(cell.get("reused") for cell in results.values())


def test_a_byte_of_the_archive_or_of_the_samples_makes_another_result(tmp_path, started):
    run(made(tmp_path / "one", {"right": "x * 2.0"}).folder, tmp_path, "first")
    run(made(tmp_path / "two", {"right": "x *  2.0"}).folder, tmp_path, "archive")
    assert len(started) == 2
    bundle = BundleFolder(tmp_path / "three")
    entry = bundle.add("right")
    entry["samples"] = bundle.file("samples", ".npz", arrays(unused=np.zeros(1)))
    bundle.close()
    run(bundle.folder, tmp_path, "samples")
    assert len(started) == 3
    archive = next((tmp_path / "one" / "archives").iterdir())
    archive.write_bytes(archive.read_bytes() + b"\0" * 512)  # its name stays
    results = run(tmp_path / "one", tmp_path, "flipped")
    assert not results[f"right@{RECENT}"].get("reused")
    assert "is damaged" in results[f"right@{RECENT}"]["error"]["message"]


def test_what_comes_from_the_machine_is_not_kept(tmp_path, started):
    bundle = made(tmp_path / "bundle", {"hangs": HANGS})
    for report in ("first", "second"):
        results = run(bundle.folder, tmp_path, report, timeout=1)
        assert results[f"hangs@{RECENT}"]["status"] == "timeout"
    assert len(started) == 2
    assert not list((tmp_path / "known").rglob("*.json"))


@pytest.mark.parametrize(
    ("status", "error", "lasts"),
    [
        ("pass", None, True),
        ("weak", ("WeakCheck", "a constant would pass"), True),
        ("mismatch", None, True),
        ("error", ("EngineLoadError", "no such operator"), True),
        ("error", ("EngineRunError", "No space left on device (os error 28)"), False),
        ("error", ("OSError", "gone"), False),
        ("error", ("BundleError", "is damaged"), False),
        ("error", ("EngineProvisionError", "no index"), False),
        ("crash", ("EngineCrash", "thread '<unnamed>' panicked at core/src/a.rs:1:2: no"), True),
        ("crash", ("EngineCrash", "died of SIGSEGV"), True),
        ("crash", ("EngineCrash", "killed by SIGKILL from outside"), False),
        ("crash", ("EngineCrash", "killed by SIGTERM from outside"), False),
        ("timeout", ("EngineTimeout", "late"), False),
        ("oom", ("EngineOutOfMemory", "no"), False),
        ("not_run", ("WorkerDied", "no"), False),
        ("skip", ("Skipped", "no"), False),
    ],
)
def test_only_what_archive_and_engine_decide_lasts(status, error, lasts):
    line = ErrorLine(*error) if error else None
    assert is_lasting(CellLine(SCHEMA, "n", "c", "tract", "1", "1", status, "run", error=line)) == lasts


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _other(data: bytes) -> bytes:
    return data.replace(b"mismatch", b"pass")


def _signed(data: bytes) -> bytes:
    fields = json.loads(data)
    return json.dumps({**fields, "key": "0" * 64}).encode()


@pytest.mark.parametrize("damage", [_cut, _other, _signed, lambda data: b"[" * 100_000, lambda data: b""])
def test_damaged_results_are_told_and_judged_again(tmp_path, started, capsys, damage):
    bundle = made(tmp_path / "bundle", {"wrong": "x * 2.01"})
    run(bundle.folder, tmp_path, "first")
    (path,) = (tmp_path / "known").rglob("*.json")
    good = path.read_bytes()
    path.write_bytes(damage(good))
    capsys.readouterr()
    results = run(bundle.folder, tmp_path, "second")
    assert results[f"wrong@{RECENT}"]["status"] == "mismatch"
    assert len(started) == 2
    message = f"a result is damaged, and test_g.py::test_g[wrong-tract-{RECENT}] is judged again"
    assert message in capsys.readouterr().err
    assert run(bundle.folder, tmp_path, "third")[f"wrong@{RECENT}"]["reused"], "a good one is in its place"


def test_a_store_that_cannot_be_written_costs_no_cell(tmp_path, started, capsys):
    (tmp_path / "known").write_text("a file")
    results = run(made(tmp_path / "bundle").folder, tmp_path, "site")
    assert [cell["status"] for cell in results.values()] == ["pass", "mismatch", "error"]
    stderr = capsys.readouterr().err
    assert stderr.count("--reuse: results cannot be written") == 1


def test_many_write_at_once_and_nobody_reads_a_part(tmp_path):
    messages: list[str] = []
    data = {f"{number:064x}": msgspec.json.encode({"n": number, "fill": "x" * 50_000}) for number in range(20)}

    def use(turn: int) -> None:
        with ResultStore(str(tmp_path / "known"), messages.append) as store:
            for key, text in data.items():
                store.put(key, text)
                assert store.get([key]).get(key, text) == text

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert messages == []
    assert sorted(path.stem for path in (tmp_path / "known").rglob("*") if path.is_file()) == sorted(data)


def test_a_url_is_read_and_written_by_fsspec(tmp_path, started, capsys):
    fsspec = pytest.importorskip("fsspec", reason="pip install 'pytest-t2n[dask]'")
    bundle = made(tmp_path / "bundle")
    url = f"memory://t2n-{tmp_path.name}"
    for report in ("first", "second"):
        main(words(bundle.folder, "--report", str(tmp_path / report), "--reuse", url))
    assert len(started) == 3
    assert all(cell["reused"] for cell in cells(tmp_path / "second").values())
    assert len(fsspec.filesystem("memory").glob(f"/t2n-{tmp_path.name}/*/*.json")) == 3
    assert main(words(bundle.folder, "--reuse", "nothing://x")) == 1
    assert "error: --reuse=nothing://x: " in capsys.readouterr().err
