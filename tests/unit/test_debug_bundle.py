"""A packed debug bundle: what becomes of it where the export fails, or where it cannot be written."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from t2n_core.errors import ParityError, WriteError
from t2n_core.export.debug_bundle import bundle_folder


def export(bundle: Path, failure: Exception | None = None) -> None:
    """Write a bundle as an export does, which then fails."""
    with bundle_folder(bundle) as folder:
        folder.mkdir()
        (folder / "io.npz").write_text("arrays")
        if failure is not None:
            raise failure


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A path that cannot be written, since its folder is a file."""
    (tmp_path / "file").write_text("no folder")
    return tmp_path / "file" / "debug.tgz"


def test_a_failed_export_leaves_its_bundle(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match="differ"):
        export(tmp_path / "debug.tgz", ParityError("outputs differ"))
    with tarfile.open(tmp_path / "debug.tgz") as tar:
        assert "debug/io.npz" in tar.getnames()


def test_a_bundle_that_cannot_be_packed_does_not_hide_the_failure(nowhere: Path) -> None:
    with pytest.raises(ParityError, match="differ") as failed:
        export(nowhere, ParityError("outputs differ"))
    assert "the debug bundle" in failed.value.__notes__[0]


def test_a_bundle_that_cannot_be_packed_is_an_error(nowhere: Path) -> None:
    with pytest.raises(WriteError, match="the debug bundle"):
        export(nowhere)
