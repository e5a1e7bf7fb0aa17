"""Bundles: exported cells in a directory, to be judged anywhere without torch.

manifest.json            the cells, and the files of each
archives/<sha256>.tar    archives for the engine; cells with the same bytes share one
samples/<sha256>.npz     inputs and expected outputs: `0.input.0`, `0.expected.0`, … by sample; `0.outside.0`, … are
                         inputs that the engine has to refuse
entries/                 the checks of a session that has not ended, a file for each; the manifest then lists none
"""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_t2n.records.cell import Cell
from pytest_t2n.records.folder import GITIGNORE_FILE, ignore_in_git
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.schema import PlatformLine, RunLine
from t2n_core.errors import InputError
from t2n_core.files import replace_with, write_whole
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.judging.interface import Interface

if TYPE_CHECKING:
    from t2n_core.parity.judging.judgement import Judgement
    from t2n_core.parity.request import CheckRequest
    from t2n_core.parity.samples import Sample

SCHEMA = 1
MANIFEST = "manifest.json"
ENTRIES = "entries"
"""Folder with one file per check while the session runs; workers share nothing else."""
_CONTENTS = ("archives", "samples")
"""Folders with the files of the checks."""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The subject of a check, as in its record."""

    op: str = ""
    ops: list[str] = []
    dtype: str = ""
    notes: list[str] = []


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """A check of a cell, with the fields that its record takes from the export."""

    cell: Cell
    request: CheckRequest
    subject: Subject = field(default_factory=Subject)
    place: int = 0
    """The index of the check in its cell."""
    drawn: Mapping[str, str] = field(default_factory=dict)
    """How random inputs were drawn, by name."""


class CheckEntry(msgspec.Struct, frozen=True):
    """A check of a cell; a test that exports twice has two."""

    nodeid: str
    case: str
    engine_id: str
    target: str
    version: str
    label: str
    archive: str
    samples: str
    sizes: list[dict[str, int]]
    output_names: list[str]
    tolerance: TractCheckTolerance
    constant_outputs: list[str] = []
    levels: dict[str, TractCheckTolerance] = {}
    """Levels of single outputs."""
    limits: dict[str, tuple[float, float]] = {}
    """atol and rtol by output; those under the empty name apply to all others."""
    metrics: list[str] = []
    """Names of metrics, which are functions of the test and not in the bundle."""
    elementwise: bool = True
    """False if only the metrics decide."""
    held: str = ""
    """The sizes for which the archive is valid."""
    outside: list[dict[str, int]] = []
    """Sizes just outside that range, which the engine has to refuse."""
    subject: Subject = Subject()
    place: int = 0
    """The index of the check in its cell."""
    carries: bool = False
    """True for a stream, whose state is carried from call to call."""
    drawn: dict[str, str] = {}
    """How random inputs were drawn, by name."""
    interface: Interface | None = None
    """The declared inputs and outputs."""
    reference: str = ""
    """The reference of a file that no test exported; empty for an export, whose reference is PyTorch."""
    exporter: str = ""
    """The exporter that wrote the archive; empty for this package's own."""

    @property
    def criteria(self) -> Judgement:
        """Return the criteria, without the metrics."""
        from t2n_core.parity.judging.judgement import Judgement

        return Judgement(self.tolerance, self.levels, self.limits, elementwise=self.elementwise)


class Manifest(msgspec.Struct, frozen=True):
    """The checks of a bundle, in a stable order."""

    schema: int
    platform: PlatformLine
    """The platform of the export."""
    checks: list[CheckEntry]
    unfinished: str = ""
    """The reason why checks are missing."""


def check_bundle_folder(directory: Path) -> None:
    """Create the directory if it is missing; git ignores what is in it if it is new, or holds a bundle alone.

    Raises:
        InputError: it cannot be created, or holds something else.
    """
    try:
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in directory.iterdir()} - {GITIGNORE_FILE}
        if names and MANIFEST not in names:
            raise InputError(f"--t2n-bundle={directory}: the directory holds something that is not a bundle")
        if is_new or (names and names <= {MANIFEST, ENTRIES, *_CONTENTS}):
            ignore_in_git(directory)
    except OSError as exc:
        raise InputError(f"--t2n-bundle={directory}: {exc.strerror or exc}") from None


def start_bundle(directory: Path, entries: Sequence[CheckEntry] = ()) -> None:
    """Start a bundle; of an existing one, only the checks in `entries` stay.

    Raises:
        InputError: it cannot be written.
    """
    try:
        shutil.rmtree(directory / ENTRIES, ignore_errors=True)
        (directory / ENTRIES).mkdir()
        for check in entries:
            _write_entry(directory, check)
        if not entries:
            for name in _CONTENTS:
                shutil.rmtree(directory / name, ignore_errors=True)
        write_manifest(directory, (), this_platform(), "its session did not end")
    except OSError as exc:
        raise InputError(f"--t2n-bundle={directory}: {exc.strerror or exc}") from None


def add_to_bundle(directory: Path, inputs: CheckInputs) -> None:
    """Write the files of one check; safe in many processes at once. Raises OSError, InputError."""
    _write_entry(directory, write_check(directory, inputs))


def keep_in_bundle(directory: Path, inputs: CheckInputs, tell: Callable[[str], object]) -> None:
    """Write the files of one check; `tell` takes a line if they cannot be: a full disk costs them, not the result."""
    try:
        add_to_bundle(directory, inputs)
    except (OSError, InputError) as exc:
        reason = (exc.strerror if isinstance(exc, OSError) else None) or exc
        tell(f"--t2n-bundle: {inputs.cell.nodeid} is not in the bundle: {reason}")


def _write_entry(directory: Path, entry: CheckEntry) -> None:
    data = msgspec.json.encode(entry)
    write_whole(directory / ENTRIES / f"{hashlib.sha256(data).hexdigest()}.json", data)


def finish_bundle(directory: Path, run: RunLine, unfinished: str = "") -> int:
    """Write the manifest; return the number of checks. `unfinished` is why some are missing. Raises OSError."""
    files = sorted((directory / ENTRIES).glob("*.json"))
    entries = [msgspec.json.decode(path.read_bytes(), type=CheckEntry) for path in files]
    write_manifest(directory, entries, run.platforms[0], unfinished)
    shutil.rmtree(directory / ENTRIES, ignore_errors=True)
    return len(entries)


def write_manifest(
    directory: Path, entries: Iterable[CheckEntry], exporter: PlatformLine, unfinished: str = ""
) -> None:
    """Write the manifest of these checks, exported on a platform. Raises OSError."""
    checks = sorted(entries, key=lambda entry: (entry.nodeid, entry.place, entry.archive, entry.samples))
    manifest = Manifest(SCHEMA, exporter, checks, unfinished)
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    write_whole(directory / MANIFEST, data + b"\n")


def write_check(directory: Path, inputs: CheckInputs) -> CheckEntry:
    """Write archive and samples under names derived from their contents.

    Raises:
        OSError: they cannot be written.
        InputError: an ONNX model with its weights is too large for one file.
    """
    from t2n_core.parity.request import PYTORCH

    cell, request = inputs.cell, inputs.request
    criteria = request.criteria
    archive = Path("archives") / _write_archive(request.archive, directory / "archives")
    data = npz_of(request.samples, outside=request.outside)
    samples = Path("samples") / f"{hashlib.sha256(data).hexdigest()}.npz"
    write_whole(directory / samples, data)
    return CheckEntry(
        cell.nodeid,
        cell.case,
        cell.engine.id,
        cell.engine.kind,
        cell.engine.version,
        cell.engine.label,
        archive.as_posix(),
        samples.as_posix(),
        [dict(sample.sizes) for sample in request.samples],
        list(request.output_names),
        criteria.level,
        sorted(request.constant_outputs),
        dict(criteria.levels),
        dict(criteria.limits),
        [metric.name for metric in criteria.metrics],
        criteria.elementwise,
        str(request.range),
        [dict(sample.sizes) for sample in request.outside],
        inputs.subject,
        inputs.place,
        request.carries,
        dict(inputs.drawn),
        request.interface,
        "" if request.reference == PYTORCH else request.reference,
        cell.engine.exporter,
    )


def _write_archive(source: Path, folder: Path) -> str:
    """Write an archive, or an ONNX model with its weights inside, and return its name."""
    from t2n_core.files import archive_digest
    from t2n_core.nnef.reading.file_kind import is_onnx

    content = None
    if is_onnx(source):
        from t2n_core.onnx_file.model import bytes_with_weights

        content = bytes_with_weights(source)
    sha256 = archive_digest(source)[0] if content is None else hashlib.sha256(content).hexdigest()
    target = folder / (sha256 + "".join(source.suffixes[-1:]))
    if content is None:
        _copy(source, target)
    elif not target.exists():
        write_whole(target, content)
    return target.name


def npz_of(samples: Sequence[Sample], actual: Sequence[Sequence[Any]] = (), outside: Sequence[Sample] = ()) -> bytes:
    """Return the arrays of samples, an engine's outputs and inputs to refuse as a reproducible .npz."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for number, sample in enumerate(samples):
        for kind, group in (("input", sample.inputs), ("expected", sample.expected)):
            arrays |= {f"{number}.{kind}.{index}": array for index, array in enumerate(group)}
    for number, outputs in enumerate(actual):
        arrays |= {f"{number}.actual.{index}": array for index, array in enumerate(outputs)}
    for number, sample in enumerate(outside):
        arrays |= {f"{number}.outside.{index}": array for index, array in enumerate(sample.inputs)}
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        replace_with(target, lambda draft: _copy_into(draft, source), folder=source.is_dir())
    except OSError:
        if not target.exists():  # a folder that another worker wrote meanwhile
            raise


def _copy_into(draft: Path, source: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, draft, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, draft)
