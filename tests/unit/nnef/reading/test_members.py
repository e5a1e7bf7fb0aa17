"""Archives that anybody may have written: names, links, sizes and texts that harm are refused before they do."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import time
from pathlib import Path

import pytest

from t2n_core.errors import InputError
from t2n_core.nnef.reading.archive import read_archive, tensor_of
from t2n_core.nnef.reading.members import read_members
from t2n_core.nnef.reading.origins import ORIGINS_FILE, read_origins
from t2n_core.nnef.reading.parser import read_text

GRAPH = "version 1.0;\n\ngraph network(x) -> (y)\n{\n  x = external(shape = [3, 4]);\n  y = relu(x);\n}\n"


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def with_shape(extent: str) -> str:
    return GRAPH.replace("[3, 4]", f"[{extent}, 4]")


@pytest.mark.parametrize("name", ["../w.dat", "/tmp/w.dat", "a/../../w.dat", "C:\\w.dat", "..\\w.dat"])
def test_a_name_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    archive = packed(tmp_path / "m.tgz", {"graph.nnef": GRAPH.encode(), name: b""})
    with pytest.raises(InputError, match="is not the name of a file inside the folder"):
        read_members(archive)


def test_files_that_are_no_part_of_a_model_are_left_out(tmp_path: Path) -> None:
    archive = packed(tmp_path / "m.tgz", {"./graph.nnef": GRAPH.encode(), "../run.pth": b"import os", "a/w.dat": b"1"})
    assert read_members(archive) == {"graph.nnef": GRAPH.encode(), "a/w.dat": b"1"}


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    linked = tmp_path / "linked.tar"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        with tarfile.open(linked, "w") as tar:
            member = tarfile.TarInfo("w.dat")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
        with pytest.raises(InputError, match=r"'w\.dat' is not a file"):
            read_members(linked)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "graph.nnef").write_text(GRAPH)
    os.mkfifo(folder / "w.dat")
    with pytest.raises(InputError, match=r"w\.dat is not a regular file"):
        read_members(folder)
    (folder / "w.dat").unlink()
    (folder / "w.dat").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"'w\.dat' is not a file"):
        read_members(folder)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.tgz"
    member = tarfile.TarInfo("w.dat")
    member.size = 1 << 40
    with gzip.open(bomb, "wb") as stream:
        stream.write(member.tobuf())
        stream.write(bytes(1 << 16))
    with pytest.raises(InputError, match="more bytes unpacked, than an archive of weights"):
        read_members(bomb)


@pytest.mark.parametrize(
    ("extent", "reason"),
    [("[" * 20000 + "3" + "]" * 20000, "nested too deeply"), ("-" * 20000 + "3", "nested too deeply"),
     ("9" * 5000, "a number of 5000 digits")],
    ids=["lists", "signs", "digits"],
)  # fmt: skip
def test_texts_that_are_too_deep_or_too_long_are_refused(extent: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_text(with_shape(extent))


def test_long_names_take_no_quadratic_time() -> None:
    fragment = f"fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) {{ y = {'a' * 200_000}; }}\n"
    start = time.process_time()
    document = read_text(GRAPH.replace("graph network", fragment + "graph network"))
    assert time.process_time() - start < 5
    assert document.fragments["f"].uses == frozenset()


def test_the_operators_of_a_fragment_are_found_with_a_type_and_in_a_scan() -> None:
    fragment = (
        'fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) { a = g<scalar>(h(x)); y = s(body = "k", b = a); }\n'
    )
    document = read_text(GRAPH.replace("graph network", fragment + "graph network"))
    assert document.fragments["f"].uses == {"g", "h", "s", "k"}


def header(shape: list[int], *, bits: int = 32, kind: int = 0, size: int = 0) -> bytes:
    extents = [*shape, *[0] * (8 - len(shape))]
    return struct.pack("<2sBBII8III76x", b"N\xef", 1, 0, size, len(shape), *extents, bits, kind)


@pytest.mark.parametrize("shape", [[2**32 - 1] * 8, [2**31, 2**31, 4], [2**32 - 1, 2**31]])
def test_extents_that_do_not_fit_the_file_are_refused(shape: list[int]) -> None:
    with pytest.raises(InputError, match="too few"):
        tensor_of(header(shape, size=16) + bytes(16), "w.dat")


def test_extents_that_wrap_around_for_booleans_are_refused() -> None:
    with pytest.raises(InputError, match="too few"):
        tensor_of(header([2**32 - 1], bits=1, kind=5, size=1) + b"\0", "w.dat")


def test_origins_are_a_file_of_texts(tmp_path: Path) -> None:
    file = tmp_path / ORIGINS_FILE
    assert read_origins(tmp_path) == {}
    for content in ('{"a": 1}', "[" * 100_000, "[]"):
        file.write_text(content)
        with pytest.raises(InputError, match=r"origins\.json"):
            read_origins(tmp_path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match="is not a regular file"):
        read_origins(tmp_path)


def test_a_damaged_archive_is_no_traceback(tmp_path: Path) -> None:
    broken = tmp_path / "m.tgz"
    broken.write_bytes(b"\x1f\x8b" + bytes(100))
    with pytest.raises(InputError, match="is not an archive"):
        read_archive(broken)
