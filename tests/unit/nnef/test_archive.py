"""Archives: forms, bytes, and what is left behind when something goes wrong."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nnef
import numpy as np
import pytest

from t2n_core.errors import WriteError
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.writer import graph_text

TRACT = spec_for("tract", "0.21.19")
KHRONOS = spec_for("khronos", "1.0.5")


@pytest.fixture
def graph(build: Any) -> Graph:
    rng = np.random.default_rng(3)
    x = build.input("x", [2, 3])
    b = build.variable("enc/b.0", rng.standard_normal((1, 3)).astype(np.float32))
    a = build.variable("a", rng.standard_normal((2, 1)).astype(np.float32))
    y = build.op("add", "y", [2, 3], x=x, y=b)
    return build.outputs(build.op("mul", "z", [2, 3], x=y, y=a))


def content(archive: Path) -> dict[str, bytes]:
    if archive.is_dir():
        return {str(f.relative_to(archive)): f.read_bytes() for f in archive.rglob("*") if f.is_file()}
    with tarfile.open(archive) as tar:
        files = {entry.name: tar.extractfile(entry) for entry in tar}
        return {name: file.read() for name, file in files.items() if file is not None}


def test_forms_have_the_same_content(graph: Graph, tmp_path: Path) -> None:
    names = ["folder", "folder-0.21.19", "a.tar", "a.tgz", "a.tar.gz", "a.nnef.tgz", "A.TGZ"]
    paths = [write_archive(graph, tmp_path / name, spec=TRACT) for name in names]
    assert [p.name for p in paths] == names
    assert paths[0].is_dir()
    assert paths[1].is_dir()
    contents = [content(path) for path in paths]
    assert all(c == contents[0] for c in contents)
    assert contents[0].keys() == {"graph.nnef", "a.dat", "enc/b.0.dat"}
    assert contents[0]["graph.nnef"].decode() == graph_text(graph, spec=TRACT)
    assert paths[3].read_bytes()[:2] == b"\x1f\x8b"
    with tarfile.open(paths[2]) as tar:
        assert tar.getnames() == ["graph.nnef", "a.dat", "enc/b.0.dat"]
        assert {(e.mtime, e.uid, e.gid, e.uname, e.gname, e.mode) for e in tar} == {(0, 0, 0, "", "", 0o644)}
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)


def test_weights_are_the_numbers(graph: Graph, tmp_path: Path) -> None:
    read = nnef.load_graph(str(write_archive(graph, tmp_path / "k", spec=KHRONOS)))
    for operation, value in graph.variables():
        assert isinstance(value.weight, ArrayWeight)
        np.testing.assert_array_equal(read.tensors[value.name].data, value.weight.array)
        assert operation.arguments["label"]


@pytest.mark.parametrize("suffix", [".tar", ".tgz"])
def test_same_bytes_twice(graph: Graph, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_archive(graph, tmp_path / f"one{suffix}", spec=TRACT).read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert write_archive(graph, tmp_path / f"two{suffix}", spec=TRACT).read_bytes() == first


def test_compression_level(graph: Graph, tmp_path: Path) -> None:
    sizes = {
        level: write_archive(graph, tmp_path / f"{level}.tgz", spec=TRACT, compression=level).stat().st_size
        for level in (0, 3)
    }
    assert sizes[3] < sizes[0]
    with pytest.raises(WriteError, match="compression level 9 is not within 0 to 3"):
        write_archive(graph, tmp_path / "x.tgz", spec=TRACT, compression=9)
    with pytest.raises(WriteError, match="for gzipped archives"):
        write_archive(graph, tmp_path / "x.tar", spec=TRACT, compression=3)


def test_shared_weight_is_written_once(build: Any, tmp_path: Path) -> None:
    x = build.input("x", [2, 3])
    array = np.ones((1, 3), np.float32)
    a, b = build.variable("w", array), build.variable("w", array)
    b.name, b.weight = "w_again", a.weight
    graph = build.outputs(build.op("add", "y", [2, 3], x=build.op("mul", "t", [2, 3], x=x, y=a), y=b))
    with tarfile.open(write_archive(graph, tmp_path / "a.tar", spec=TRACT)) as tar:
        assert tar.getnames() == ["graph.nnef", "w.dat"]
    b.weight = ArrayWeight(array.copy())
    with pytest.raises(WriteError, match="two weights have the label 'w'"):
        write_archive(graph, tmp_path / "b.tar", spec=TRACT)


@pytest.mark.parametrize("label", ["../x", "/x", "a/../b", ".hidden", "a/.b", "a//b", "", "a b", "x" * 251, "é"])
def test_labels_that_are_no_file_names(label: str, build: Any, tmp_path: Path) -> None:
    x = build.input("x", [2, 3])
    w = build.variable(label, np.ones((1, 3), np.float32))
    graph = build.outputs(build.op("add", "y", [2, 3], x=x, y=w))
    with pytest.raises(WriteError, match="label"):
        write_archive(graph, tmp_path / "in" / "folder", spec=TRACT)
    assert not list(tmp_path.iterdir())


class Failing:
    """A weight whose source fails half-way."""

    dtype, shape = np.dtype(np.float32), (2, 1)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def chunks(self) -> Iterator[memoryview]:
        yield memoryview(b"1234")
        raise self.error


@pytest.mark.parametrize("name", ["folder", "a.tar", "a.tgz"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no"), OSError(28, "No space left on device")])
def test_failure_leaves_what_was_there(name: str, error: BaseException, graph: Graph, tmp_path: Path) -> None:
    weight = graph.operations[2].outputs[0]
    good = weight.weight
    weight.weight = Failing(error)
    expected: Any = WriteError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        write_archive(graph, tmp_path / name, spec=TRACT)
    assert list(tmp_path.iterdir()) == []
    if isinstance(error, OSError):
        assert "No space left on device" in str(caught.value)
    weight.weight = good
    before = content(write_archive(graph, tmp_path / name, spec=TRACT))
    weight.weight = Failing(error)
    with pytest.raises(expected):
        write_archive(graph, tmp_path / name, spec=TRACT)
    assert content(tmp_path / name) == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_directory_is_replaced_only_if_it_is_an_export(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    write_archive(graph, folder, spec=TRACT)
    (folder / "old.dat").write_bytes(b"")
    write_archive(graph, folder, spec=TRACT)
    assert not (folder / "old.dat").exists()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(WriteError, match=r"holds other files, for example notes\.txt"):
        write_archive(graph, folder, spec=TRACT)
    assert (folder / "notes.txt").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.dat").write_bytes(b"")
    with pytest.raises(WriteError, match="holds other files"):
        write_archive(graph, tmp_path / "other", spec=TRACT)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match="not a directory"):
        write_archive(graph, tmp_path / "file", spec=TRACT)
    (tmp_path / "d.tar").mkdir()
    with pytest.raises(WriteError, match="is a directory"):
        write_archive(graph, tmp_path / "d.tar", spec=TRACT)


@pytest.mark.parametrize("name", ["model.onnx", "model.nnef", "model.zip", "model.gz"])
def test_suffix_of_another_file(name: str, graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="an archive ends in"):
        write_archive(graph, tmp_path / name, spec=TRACT)


@pytest.mark.parametrize("name", ["folder", "a.tar", "a.tgz"])
def test_missing_parent(name: str, graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"the folder .*nowhere does not exist"):
        write_archive(graph, tmp_path / "nowhere" / name, spec=TRACT)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_full_disk(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def on_a_full_disk(self: Path, *args: Any, **kwargs: Any) -> Any:
        writes = "part" in str(self) and args[:1] in (("wb",), ("ab",))
        return opened(Path("/dev/full") if writes else self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", on_a_full_disk)
    for name in ("a.tar", "a.tgz", "folder"):
        with pytest.raises(WriteError, match="No space left on device"):
            write_archive(graph, tmp_path / name, spec=TRACT)
        assert list(tmp_path.iterdir()) == []


def test_permissions_follow_the_umask(graph: Graph, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        modes = [write_archive(graph, tmp_path / n, spec=TRACT).stat().st_mode & 0o777 for n in ("d", "a.tgz")]
    finally:
        os.umask(old)
    assert modes == [0o750, 0o640]


class Counted:
    """A large weight that is made on the way, piece by piece."""

    dtype, shape = np.dtype(np.float32), (64, 1 << 18)

    def chunks(self) -> Iterator[memoryview]:
        for _ in range(64):
            yield memoryview(bytes(1 << 20))


@pytest.mark.parametrize("name", ["folder", "a.tar", "a.tgz"])
def test_weights_are_streamed(name: str, build: Any, tmp_path: Path) -> None:
    """64 MiB of weights pass through less than 8 MiB of memory."""
    x = build.input("x", [64, 1])
    w = build.variable("w", np.zeros((1, 1), np.float32))
    w.shape, w.weight = Counted.shape, Counted()
    build.graph.operations[1].arguments["shape"] = list(Counted.shape)
    graph = build.outputs(build.op("add", "y", Counted.shape, x=x, y=w))
    tracemalloc.start()
    try:
        write_archive(graph, tmp_path / name, spec=TRACT, compression=1 if name.endswith("gz") else None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_gzip_header_has_no_time_and_no_name(graph: Graph, tmp_path: Path) -> None:
    data = write_archive(graph, tmp_path / "secret_name.tgz", spec=TRACT).read_bytes()
    assert data[3] == 0  # no optional fields: no name, no comment
    assert data[4:8] == bytes(4)
    with gzip.open(io.BytesIO(data)) as plain:
        assert plain.read(10) == b"graph.nnef"
