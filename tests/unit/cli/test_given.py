"""The name of a case that is a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_t2n.cli.upstream.given import stem_of


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("kws0.23.nnef.tgz", "kws0.23"),
        ("kws.v2.tar.gz", "kws.v2"),
        ("kws.NNEF.tar", "kws"),
        ("kws.nnef", "kws"),
        ("net-1.0.onnx", "net-1.0"),
        (".tgz", ".tgz"),
    ],
)
def test_only_the_ending_is_cut_off(tmp_path: Path, file: str, name: str) -> None:
    assert stem_of(tmp_path / file) == name


def test_a_folder_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "kws.v2").mkdir()
    assert stem_of(tmp_path / "kws.v2") == "kws.v2"
