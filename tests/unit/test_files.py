"""Files that are complete or as they were before."""

from __future__ import annotations

import stat

import pytest

from t2n_core.files import archive_digest, replace_with, replacing, write_whole


def test_a_file_is_written_with_its_folders_and_ordinary_rights(tmp_path):
    path, plain = tmp_path / "new" / "matrix.jsonl", tmp_path / "plain"
    write_whole(path, "first line\n")
    write_whole(path, b"second line\n")
    plain.touch()
    assert path.read_text() == "second line\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["matrix.jsonl"]
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_after_an_error_the_file_is_as_it_was(tmp_path):
    path = tmp_path / "summary.md"
    write_whole(path, "complete")

    def write_half() -> None:
        with replacing(path) as sink:
            sink.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "complete"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_a_file_do_not_mix(tmp_path):
    path = tmp_path / "expectations.toml"
    with replacing(path) as first, replacing(path) as other:
        first.write(b"one")
        other.write(b"other")
    assert path.read_text() == "one", "the last one that finished"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_another_as_a_whole(tmp_path):
    target = tmp_path / "archive"
    target.mkdir()
    (target / "old").touch()
    replace_with(target, lambda draft: (draft / "new").touch(), folder=True)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["archive", "archive/new"]

    def fail(draft):
        (draft / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        replace_with(target, fail, folder=True)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["archive", "archive/new"]


def test_digest_of_a_directory_knows_names_and_contents(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graph.nnef").write_text("graph")
    assert archive_digest(tmp_path / "one") == archive_digest(tmp_path / "two")
    (tmp_path / "two" / "graph.nnef").rename(tmp_path / "two" / "other.nnef")
    assert archive_digest(tmp_path / "one")[0] != archive_digest(tmp_path / "two")[0]
