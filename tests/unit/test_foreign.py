"""Untrusted files: names inside a folder, files of another kind, too large, too deep, or with other contents."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from t2n_core.foreign import ForeignFileError, decode_json, inside, open_file, read_file
from t2n_core.nnef.reading import graph_file
from t2n_core.npz import read_npz


def test_names_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("")
    (tmp_path / "a" / "link").symlink_to("b")
    assert inside(tmp_path, "a/b") == tmp_path / "a" / "b"
    assert inside(tmp_path, "a/link").exists(), "a link that stays inside"
    (tmp_path / "a" / "out").symlink_to(tmp_path.parent)
    for name in ("../x", "/etc/passwd", "a/../../x", "a/out", "", "a\0", "none", "C:\\x", "a\\b"):
        with pytest.raises(ForeignFileError):
            inside(tmp_path, name)


def test_files_have_a_kind_and_a_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"12345")
    assert read_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ForeignFileError, match="has 5 bytes, more than 4"):
        read_file(tmp_path / "file", 4)
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ForeignFileError, match="is not a regular file"):
            open_file(path)
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)


def test_json_is_told_by_its_line() -> None:
    assert decode_json(b'{"a": 1}', dict[str, int], "f") == {"a": 1}
    with pytest.raises(ForeignFileError, match=r"^f:3: JSON is malformed"):
        decode_json(b'{\n"a":\n}', dict[str, int], "f")
    with pytest.raises(ForeignFileError, match="nested too deeply"):
        decode_json(b"[" * 100_000 + b"]" * 100_000, list[object], "f")  # type: ignore[arg-type]


def test_arrays_are_those_that_numpy_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {
        "a.0": rng.standard_normal((2, 3)).astype("f2").T,
        "b": np.array(True),
        "c": np.arange(5, dtype=">i4"),
        "d": np.zeros((0, 3)),
        "file": rng.standard_normal((3, 4)) + 1j,
    }
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **{name: array for name, array in arrays.items() if name != "file"})
    (tmp_path / "x.npz").write_bytes(stream.getvalue())
    contents = read_npz(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as others:
        assert list(contents) == others.files
        for name in others.files:
            assert (contents[name].dtype, contents[name].shape) == (
                others[name].dtype.newbyteorder("="),
                others[name].shape,
            )
            assert np.array_equal(contents[name], others[name])
    with pytest.raises(ForeignFileError, match="too many"):
        read_npz(tmp_path / "x.npz", 40)


def test_two_arrays_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, warnings.catch_warnings(action="ignore"):
        for value in (1.0, 2.0):
            stream = io.BytesIO()
            np.save(stream, np.full(2, value))
            archive.writestr("y.npy", stream.getvalue())
    with pytest.raises(ForeignFileError, match="two of its arrays have one name"):
        read_npz(tmp_path / "x.npz")


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("suffix", [".tar", ".tgz"])
def test_the_graph_of_any_archive(tmp_path: Path, place: str, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["./graph.nnef", "a" * 150 + ".dat"]
    path = tmp_path / f"a{suffix}"
    with tarfile.open(path, "w" if suffix == ".tar" else "w:gz") as tar:
        for name in names if place == "first" else reversed(names):
            entry = tarfile.TarInfo(name)
            entry.size = 3_000_001
            tar.addfile(entry, io.BytesIO(b"g" * 3_000_001))
    assert graph_file.read_graph(path) == b"g" * 3_000_001
    monkeypatch.setattr(graph_file, "_MOST_TEXT", 3_000_000)
    with pytest.raises(ForeignFileError, match="3000001 bytes"):
        graph_file.read_graph(path)
    monkeypatch.setattr(graph_file, "_MOST_SECONDS", -1.0)
    with pytest.raises(
        ForeignFileError, match="seconds of unpacking" if (place, suffix) == ("last", ".tgz") else "bytes"
    ):
        graph_file.read_graph(path)
    path.write_bytes(gzip.compress(path.read_bytes())[:-100] if suffix == ".tar" else path.read_bytes()[:1000])
    with pytest.raises(ForeignFileError):
        graph_file.read_graph(path)


@pytest.mark.parametrize(("text", "read"), [("18446744073709551615", True), ("18446744073709551616", False)])
def test_integers_have_64_bits(text, read):
    if read:
        assert decode_json(b'{"a": %s}' % text.encode(), dict[str, int], "f.json") == {"a": int(text)}
        return
    with pytest.raises(ForeignFileError, match=r"f\.json: an integer has more than 64 bits"):
        decode_json(b'{"a": %s}' % text.encode(), dict[str, int], "f.json")
