"""The debug bundle of an export: archive, example and outputs of PyTorch, in the layout of tract's own test cases."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.errors import WriteError
from t2n_core.files import replace_with
from t2n_core.level import TractCheckTolerance
from t2n_core.nnef.reading.origins import origins_of, write_origins
from t2n_core.reduce.tract_case import SCRIPT, TractCase, write_tract_case


def write_debug_bundle(result: ExportedArchive, folder: Path) -> None:
    """Write the bundle of an export; its script runs it in tract.

    Raises WriteError if it cannot be written, InputError for a folder that holds other files.
    """
    case = TractCase.of(
        result.archive,
        result.samples[0],
        f"exported for {result.target}",
        level=TractCheckTolerance.parse(result.target.check_io_tolerance),
        keeps_symbols=bool(result.range.bounds),
    )
    try:
        write_tract_case(case, folder)
        if result.target.name != "tract":
            (folder / SCRIPT).unlink()
        write_origins(folder, origins_of(result.graph))
    except OSError as wrong:
        raise WriteError(f"the debug bundle {folder} cannot be written: {wrong.strerror or wrong}") from wrong


@contextmanager
def bundle_folder(path: Path) -> Iterator[Path]:
    """Yield the folder of a bundle; for a path `.tgz` or `.tar.gz` a temporary one, which is packed after the block.

    Raises WriteError if it cannot be packed.
    """
    if not path.name.endswith((".tgz", ".tar.gz")):
        yield path
        return
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / path.name.removesuffix(".tgz").removesuffix(".tar.gz")
        try:
            yield folder
        except BaseException as failure:
            try:
                _pack(folder, path)
            except WriteError as wrong:  # the failure of the export is what counts
                failure.add_note(wrong.message)
            raise
        _pack(folder, path)


def _pack(folder: Path, path: Path) -> None:
    if not folder.is_dir():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_with(path, lambda draft: _write_tar(folder, draft))
    except OSError as wrong:
        raise WriteError(f"the debug bundle {path} cannot be written: {wrong.strerror or wrong}") from wrong


def _write_tar(folder: Path, path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, arcname=folder.name, filter=_without_owner)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    return entry.replace(uid=0, gid=0, uname="", gname="", deep=False)
