"""Damaged and hostile bundles: each fault is one named cell, or one line with its place, and the rest is judged."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import struct
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli import main
from tests.plugin.judging.bundles import (
    GRAPH,
    ON_LINUX,
    RIGHT,
    X,
    arrays,
    cells,
    processes_with,
    records,
    start,
    tar_of,
    words,
)
from tests.plugin.judging.bundles import BundleFolder as Bundle
from tests.releases import RECENT

ENGINES_IN_CACHE = ("0.21.19", RECENT)

NOISE = (GRAPH % RIGHT + "# " + np.random.default_rng(1).bytes(4000).hex()).encode()
PACKED = gzip.compress(tar_of({"graph.nnef": NOISE}), mtime=0)


class Evil:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


def npy_header(shape, dtype="<f4"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (64 - (len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def npz(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, data in {"0.expected.0": npy_header("(2, 3)") + bytes(24), **members}.items():
            made.writestr(f"{name}.npy", data)
    return stream.getvalue()


def npz_bomb():
    """13 MB that unpack to 3 GB."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        with made.open("0.input.0.npy", "w", force_zip64=True) as file:
            file.write(npy_header(f"({3 << 28},)"))
            for _ in range(3 << 10):
                file.write(bytes(1 << 20))
        made.writestr("0.expected.0.npy", npy_header("(2, 3)") + bytes(24))
    return stream.getvalue()


def graph_bomb():
    """A graph of 2 GB, packed."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1) as packed:
        entry = tarfile.TarInfo("graph.nnef")
        entry.size = 2 << 30
        packed.write(entry.tobuf())
        packed.write((GRAPH % RIGHT).encode().ljust(1 << 20))
        for _ in range((2 << 10) - 1):
            packed.write(b" " * (1 << 20))
        packed.write(bytes(1024))
    return stream.getvalue()


def tar_with(**fields):
    """A tar with a graph that is no file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        entry = tarfile.TarInfo("graph.nnef")
        for name, value in fields.items():
            setattr(entry, name, value)
        tar.addfile(entry)
    return stream.getvalue()


def peak_memory(pid):
    """The largest size of a process so far, in megabytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM")), 0)


def flipped(data, *places):
    data = bytearray(data)
    for position in places:
        data[position] ^= 0xFF
    return bytes(data)


def evil_npz(path):
    stream = io.BytesIO()
    np.savez(stream, **{"0.input.0": np.array([Evil(path)], dtype=object), "0.expected.0": X[0]})
    return stream.getvalue()


def one_array():
    stream = io.BytesIO()
    np.save(stream, X)
    return stream.getvalue()


SAMPLES = {
    "truncated": arrays()[:-40],
    "flipped": flipped(arrays(), 80, 83),
    "empty": b"",
    "text": b"hello world",
    "npy": one_array(),
    "giant-header": npz(**{"0.input.0": npy_header("(1000000, 1000000)") + bytes(100)}),
    "negative": npz(**{"0.input.0": npy_header("(-2, -3)") + bytes(24)}),
    "deep-header": npz(**{"0.input.0": npy_header("(" * 5000)}),
    "many": npz(**{f"0.input.{n}": npy_header("()") + bytes(4) for n in range(20_000)}),
    "gap": npz(**{"0.input.1": npy_header("(2, 3)") + bytes(24)}),
    "texts": arrays(**{"0.input.0": np.array(["abc"])}),
    "bytes": arrays(**{"0.input.0": np.array([b"abc"])}),
    "times": arrays(**{"0.input.0": np.zeros((2, 3), "M8[s]")}),
    "records": arrays(**{"0.input.0": np.zeros((2, 3), [("a", "f4")])}),
    "one-sample": npz(**{"0.input.0": npy_header("(2, 3)") + bytes(24)}),
    "inputs-only": arrays(**{"1.expected.1": X[0]}).replace(b"1.expected.0", b"1.expecsed.0"),
}
ARCHIVES = {
    "empty": (".tar", b""),
    "garbage": (".tar", np.random.default_rng(2).bytes(5000)),
    "truncated": (".tgz", PACKED[:-2000]),
    "flipped": (".tgz", flipped(PACKED, 60, len(PACKED) // 2, len(PACKED) // 2 + 1)),
    "link": (".tar", tar_with(type=tarfile.SYMTYPE, linkname="/etc/passwd")),
    "own-link": (".tar", tar_with(type=tarfile.LNKTYPE, linkname="graph.nnef")),
    "device": (".tar", tar_with(type=tarfile.CHRTYPE, devmajor=1, devminor=5)),
    "escape": (".tar", tar_of({"../../ESCAPED": b"x"})),
    "weight": (
        ".tar",
        tar_of(
            {
                "graph.nnef": (GRAPH % RIGHT)
                .replace("y = x", "w = variable<scalar>(label='w', shape=[4294967295,4294967295]); y = x * w; z = x")
                .encode(),
                "w.dat": b"\x4e\xef\x01\0" + struct.pack("<IIII", 0xFFFFFFFF, 2, 0xFFFFFFFF, 0xFFFFFFFF) + bytes(108),
            }
        ),
    ),
}


@pytest.fixture
def bundle(tmp_path):
    made = Bundle(tmp_path / "bundle")
    made.add("good1")
    return made


def judged(bundle, tmp_path, *given):
    """The cells that are no passes, after a look that the good ones are; by name, status and message."""
    bundle.add("good2")
    bundle.close()
    assert main(words(bundle.folder, "--report", str(tmp_path / "site"), *given, timeout=8)) == 1
    cells_by_name = {name.partition("@")[0]: cell for name, cell in cells(tmp_path / "site").items()}
    assert (cells_by_name.pop("good1")["status"], cells_by_name.pop("good2")["status"]) == ("pass", "pass")
    assert all(cell["error"]["message"] for cell in cells_by_name.values())
    return {name: (cell["status"], cell["error"]["message"]) for name, cell in cells_by_name.items()}


def test_samples_that_are_damaged(bundle, tmp_path):
    for name, data in SAMPLES.items():
        bundle.add(name, samples=bundle.file("samples", ".npz", data))
    bundle.add("evil", samples=bundle.file("samples", ".npz", evil_npz(tmp_path / "PWNED")))
    bundle.add("pickle", samples=bundle.file("samples", ".npz", pickle.dumps(Evil(tmp_path / "PWNED"))))
    failures = judged(bundle, tmp_path)
    assert set(failures) == {*SAMPLES, "evil", "pickle"}
    assert {status for status, _ in failures.values()} == {"error"}
    assert all("samples/" in message for _, message in failures.values()), "the file is named"
    assert not (tmp_path / "PWNED").exists()


def test_archives_that_are_damaged(bundle, tmp_path):
    for name, (suffix, data) in ARCHIVES.items():
        bundle.add(name, archive=bundle.file("archives", suffix, data))
    failures = judged(bundle, tmp_path)
    assert set(failures) == set(ARCHIVES)
    assert {status for status, _ in failures.values()} <= {"error", "oom", "crash"}
    assert "root:" not in str(records(tmp_path / "site"))
    assert not list(tmp_path.rglob("ESCAPED"))


def test_files_whose_digest_is_another(bundle, tmp_path):
    check = bundle.add("archive", "x * 2.01")
    path = bundle.folder / check["archive"]
    path.write_bytes(flipped(path.read_bytes(), 600))
    check = bundle.add("samples", samples=bundle.file("samples", ".npz", arrays(**{"2.input.0": X[0]})))
    (bundle.folder / check["samples"]).write_bytes(arrays())
    failures = judged(bundle, tmp_path)
    assert {status for status, _ in failures.values()} == {"error"}, "no mismatch: the engine is not to blame"
    assert all("is damaged: its SHA-256 differs from that in its name" in message for _, message in failures.values())


def test_arrays_of_another_byte_order_and_layout_are_what_they_say(bundle, tmp_path):
    samples = {f"{n}.{kind}.0": x for n in range(2) for kind, x in (("input", X[n]), ("expected", X[n] * 2))}
    others = {"big": lambda x: x.astype(">f4"), "columns": np.asfortranarray}
    for name, change in others.items():
        data = arrays(**{key: change(array) for key, array in samples.items()})
        bundle.add(name, samples=bundle.file("samples", ".npz", data))
    bundle.close()
    assert main(words(bundle.folder, "--report", str(tmp_path / "site"))) == 0
    assert {cell["status"] for cell in cells(tmp_path / "site").values()} == {"pass"}


def test_arrays_that_the_engine_does_not_take(bundle, tmp_path):
    for dtype in ("c8", "f2", "f16"):
        bundle.add(dtype, samples=bundle.file("samples", ".npz", arrays(**{"0.input.0": np.zeros((2, 3), dtype)})))
    bundle.add("none", samples=bundle.file("samples", ".npz", arrays(**{"0.input.0": np.zeros((0,), "f4")})))
    failures = judged(bundle, tmp_path)
    assert {status for status, _ in failures.values()} == {"error"}


def test_names_that_lead_elsewhere(bundle, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "graph.nnef").write_text("# TOP SECRET\n" + GRAPH % RIGHT)
    (secret / "s.npz").write_bytes(arrays())
    (bundle.folder / "archives" / "outside").symlink_to(secret)
    (bundle.folder / "archives" / "circle").symlink_to("circle")
    holder = bundle.folder / "archives" / "holder"
    holder.mkdir()
    (holder / "graph.nnef").symlink_to(secret / "graph.nnef")
    os.mkfifo(bundle.folder / "archives" / "pipe")
    os.mkfifo(bundle.folder / "samples" / "pipe")
    piped = bundle.folder / "archives" / "piped"
    piped.mkdir()
    (piped / "graph.nnef").write_text(GRAPH % RIGHT)
    os.mkfifo(piped / "w.dat")
    names = [
        str(secret), "../secret", "archives/../../secret", "archives/outside", "archives/circle", "archives/holder",
        "archives/pipe", "archives/piped", "archives", "/dev/zero", "/proc/self", "", ".",
        "archives/a\0.tar", "a" * 5000,
        "archives/none.tar", "C:/x", "\\\\host\\x",
    ]  # fmt: skip
    for number, name in enumerate(names):
        bundle.add(f"a{number}", archive=name)
    for number, name in enumerate([str(secret / "s.npz"), "../secret/s.npz", "samples/pipe", "samples/a\0", "samples"]):
        bundle.add(f"s{number}", samples=name)
    failures = judged(bundle, tmp_path)
    assert len(failures) == 18 + 5
    assert {status for status, _ in failures.values()} == {"error"}
    assert "TOP SECRET" not in (tmp_path / "site" / "matrix.jsonl").read_text()


@ON_LINUX
def test_bombs_take_little_memory_and_time(bundle, tmp_path):
    bundle.add("numbers", samples=bundle.file("samples", ".npz", npz_bomb()))
    bundle.add("graph", archive=bundle.file("archives", ".tgz", graph_bomb()))
    bundle.add("good2")
    bundle.close()
    command = words(bundle.folder, "--report", str(tmp_path / "site"), timeout=8)
    process = start(*command, env={**os.environ, "MARK": str(tmp_path)})
    peak = 0
    while process.poll() is None:
        own_pids = [pid for pid, line in processes_with(f"MARK={tmp_path}").items() if "t2n_core.engine" not in line]
        peak = max([peak, *map(peak_memory, own_pids)])
        time.sleep(0.05)
    cells_by_name = {name.partition("@")[0]: cell for name, cell in cells(tmp_path / "site").items()}
    assert [cells_by_name[name]["status"] for name in ("good1", "numbers", "good2")] == ["pass", "error", "pass"]
    assert cells_by_name["graph"]["status"] in ("oom", "timeout", "error", "pass"), (
        "what the engine makes of it is its own"
    )
    assert 20 < peak < 300, "megabytes of the command and its processes; the engine's have a limit of their own"


DEEP = 1_000_000
"""Levels that no Python reads: from 3.14 on it looks at the size of the stack."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "manifest.json"),
        (b'{"schema": 9, "platform": {"key": ""}, "checks": []}', "schema 9, but this version reads up to 1"),
        (b'{"schema": 1, "platform": {"key": ""}, "checks": ' + b"[" * DEEP + b"]" * DEEP + b"}", "nested too deeply"),
        (
            b'{"schema": 1, "platform": {"key": ""}, "z": ' + b"[" * DEEP + b"]" * DEEP + b', "checks": []}',
            "too deeply",
        ),
        (b'{"schema": 1, "platform": {"key": "\xff\xfe"}, "checks": []}', "manifest.json"),
        (b'{"schema": ' + b"9" * 5000 + b', "platform": {"key": ""}, "checks": []}', "manifest.json"),
        (b'{"schema": 1,\n "platform": {"key": "\\ud800"},\n "checks": []}', "manifest.json:2: "),
        (b"", "manifest.json"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_one_line(bundle, capsys, text, message):
    bundle.close()
    (bundle.folder / "manifest.json").write_bytes(text)
    assert main(words(bundle.folder)) == 1
    streams = capsys.readouterr()
    assert message in streams.err
    assert (streams.err.count("error: "), "Traceback" in streams.err) == (1, False)


def test_a_manifest_that_is_a_pipe(bundle, capsys):
    os.mkfifo(bundle.folder / "manifest.json")
    assert main(words(bundle.folder)) == 1
    assert "manifest.json is not a regular file" in capsys.readouterr().err


def test_a_check_that_cannot_be_read_is_named_with_its_place(bundle, tmp_path, capsys):
    wrong = {
        "types": {"nodeid": 3},
        "place": {"place": 10**30},
        "level": {"tolerance": "any"},
        "no-engine": {"engine_id": ""},
        "other-engine": {"engine_id": "zzz"},
        "other-case": {"case": "test_g.py::test_g[good1]"},
    }
    for name, fields in wrong.items():
        bundle.add(name, **fields)
    bundle.add("no-sizes", sizes=[])
    bundle.add("more-sizes", sizes=[{}, {}, {}])
    bundle.add("version", "x * 2.01", version="not a version")
    for markup in ("relu", "red", "[/b]", "link=http://x"):
        bundle.add(markup, "x * 2.01")
    bundle.add("</script><script>alert(1)</script>\x1b[31m", "x * 2.01")
    failures = judged(bundle, tmp_path)
    printed = capsys.readouterr().out
    for number, name in enumerate(wrong, 2):
        assert f"manifest.json: check {number}" in printed, name
    assert {name for name, (status, _) in failures.items() if status == "error"} >= {"no-sizes", "more-sizes"}
    assert "\x1b" not in printed
    assert all(f"test_g[{markup}]" in printed for markup in ("relu", "red", "[/b]", "link=http://x"))
    assert "<script>alert" not in (tmp_path / "site" / "index.html").read_text()


def test_one_damaged_bundle_of_several(tmp_path, capsys):
    for name in ("one", "two", "three"):
        made = Bundle(tmp_path / "failures" / name)
        made.add(name)
        made.close()
    (tmp_path / "failures" / "two" / "manifest.json").write_text("{")
    assert main(words(tmp_path / "failures", "--report", str(tmp_path / "site"))) == 1
    assert set(cells(tmp_path / "site")) == {f"one@{RECENT}", f"three@{RECENT}"}
    assert "two/manifest.json" in capsys.readouterr().out


def test_a_folder_as_archive_is_judged(bundle, tmp_path):
    folder = bundle.folder / "archives" / "folder"
    folder.mkdir()
    (folder / "graph.nnef").write_text(GRAPH % RIGHT)
    bundle.checks.clear()
    bundle.add("folder", archive="archives/folder")
    bundle.close()
    assert main(words(bundle.folder)) == 0
    shutil.rmtree(folder)
    assert main(words(bundle.folder)) == 1
