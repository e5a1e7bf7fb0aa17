"""Bundles: exported cells in a directory, to be judged anywhere without torch.

manifest.json            which cells there are, and which files belong to each
archives/<sha256>.tar    what the engine loads; cells with the same bytes share one
samples/<sha256>.npz     inputs and expected outputs: `0.input.0`, `0.expected.0`, … by sample
"""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_t2n.records.cell import Cell
from pytest_t2n.records.platform import with_key
from pytest_t2n.records.schema import PlatformLine, RecordError, RunLine
from t2n_core.check.level import TractCheckTolerance
from t2n_core.files import put_in_place, write_whole

if TYPE_CHECKING:
    from t2n_core.check.judging.judgement import Judgement
    from t2n_core.check.samples import Sample

SCHEMA = 1
MANIFEST = "manifest.json"
_ENTRIES = "entries"
"""Folder of one file per check while the session runs: workers share nothing else."""


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """Input of a check of one archive."""

    cell: Cell
    archive: Path
    samples: Sequence[Sample]
    output_names: Sequence[str]
    judged: Judgement
    constant_outputs: Sequence[str] = ()
    """Outputs that no number of an input reaches."""


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
    """atol and rtol by output, those under `` of all others."""
    metrics: list[str] = []
    """Names of metrics, which are functions of the test and not in the bundle."""
    elementwise: bool = True
    """False if the metrics alone decide."""

    @property
    def judged(self) -> Judgement:
        """Return how outputs are judged, without the metrics."""
        from t2n_core.check.judging.judgement import Judgement

        return Judgement(self.tolerance, self.levels, self.limits, elementwise=self.elementwise)


class Manifest(msgspec.Struct, frozen=True):
    """The checks of a bundle, in a stable order."""

    schema: int
    versions: dict[str, str]
    checks: list[CheckEntry]
    platform: PlatformLine | None = None
    """The platform of the export; None in a bundle of an older version."""

    @property
    def exporter(self) -> PlatformLine:
        """Return the platform of the export; of an older bundle only its packages are known."""
        return self.platform or with_key(PlatformLine("", versions=self.versions))


def start_bundle(directory: Path) -> None:
    """Make the directory ready.

    Raises:
        pytest.UsageError: it cannot be written, or holds something else.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not (directory / MANIFEST).exists() and not (directory / _ENTRIES).exists():
            raise pytest.UsageError(f"--t2n-bundle={directory}: the directory holds something that is no bundle")
        for name in ("archives", "samples", _ENTRIES):
            shutil.rmtree(directory / name, ignore_errors=True)
            (directory / name).mkdir()
        (directory / MANIFEST).unlink(missing_ok=True)
    except OSError as exc:
        raise pytest.UsageError(f"--t2n-bundle={directory}: {exc.strerror or exc}") from None


def add_to_bundle(directory: Path, inputs: CheckInputs) -> None:
    """Write the files of one check; safe in many processes at once. Raises OSError."""
    entry = write_check(directory, inputs)
    data = msgspec.json.encode(entry)
    write_whole(directory / _ENTRIES / f"{hashlib.sha256(data).hexdigest()}.json", data)


def finish_bundle(directory: Path, run: RunLine) -> int:
    """Write the manifest; return the number of checks. Raises OSError."""
    files = sorted((directory / _ENTRIES).glob("*.json"))
    entries = [msgspec.json.decode(path.read_bytes(), type=CheckEntry) for path in files]
    write_manifest(directory, entries, run.platforms[0])
    shutil.rmtree(directory / _ENTRIES, ignore_errors=True)
    return len(entries)


def write_manifest(directory: Path, entries: Iterable[CheckEntry], exporter: PlatformLine) -> None:
    """Write the manifest of these checks, exported on a platform. Raises OSError."""
    checks = sorted(entries, key=lambda entry: (entry.nodeid, entry.archive, entry.samples))
    data = msgspec.json.format(msgspec.json.encode(Manifest(SCHEMA, exporter.versions, checks, exporter)), indent=1)
    write_whole(directory / MANIFEST, data + b"\n")


def read_bundles(directory: Path) -> Manifest:
    """Return the manifest of a bundle, or of all bundles in a folder, as `--t2n-bundle-failures` leaves them.

    Raises RecordError.
    """
    inside = [] if (directory / MANIFEST).exists() else sorted(path.parent for path in directory.glob(f"*/{MANIFEST}"))
    if not inside:
        return read_manifest(directory)
    manifests = {folder.name: read_manifest(folder) for folder in inside}
    checks = [
        msgspec.structs.replace(check, archive=f"{name}/{check.archive}", samples=f"{name}/{check.samples}")
        for name, manifest in manifests.items()
        for check in manifest.checks
    ]
    return msgspec.structs.replace(next(iter(manifests.values())), checks=checks)


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a bundle. Raises RecordError."""
    path = directory / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except OSError as exc:
        raise RecordError(f"{directory} is no bundle: {exc.strerror}") from None
    except msgspec.DecodeError as exc:
        raise RecordError(f"{path}: {exc}") from None
    if manifest.schema > SCHEMA:
        raise RecordError(f"{path}: schema {manifest.schema}, and this version reads up to {SCHEMA}")
    return manifest


def read_samples(directory: Path, entry: CheckEntry) -> list[Sample]:
    """Return the samples of a check. Raises OSError, ValueError for a damaged file."""
    import numpy as np

    from t2n_core.check.samples import Sample

    found = []
    with np.load(directory / entry.samples, allow_pickle=False) as arrays:
        for number, sizes in enumerate(entry.sizes):
            inputs = _numbered(arrays, f"{number}.input.")
            found.append(Sample(inputs, _numbered(arrays, f"{number}.expected."), sizes))
    return found


def write_check(directory: Path, inputs: CheckInputs) -> CheckEntry:
    """Write archive and samples under names made from their contents. Raises OSError."""
    from t2n_core.check.parity import archive_digest

    sha256, _ = archive_digest(inputs.archive)
    archive = Path("archives") / (sha256 + "".join(inputs.archive.suffixes[-1:]))
    _copy(inputs.archive, directory / archive)
    data = npz_of(inputs.samples)
    samples = Path("samples") / f"{hashlib.sha256(data).hexdigest()}.npz"
    write_whole(directory / samples, data)
    cell = inputs.cell
    return CheckEntry(
        cell.nodeid,
        cell.case,
        cell.engine.id,
        cell.engine.target,
        cell.engine.version,
        cell.engine.label,
        archive.as_posix(),
        samples.as_posix(),
        [dict(sample.sizes) for sample in inputs.samples],
        list(inputs.output_names),
        inputs.judged.level,
        list(inputs.constant_outputs),
        dict(inputs.judged.levels),
        dict(inputs.judged.limits),
        [metric.name for metric in inputs.judged.metrics],
        inputs.judged.elementwise,
    )


def npz_of(samples: Sequence[Sample], actual: Sequence[Sequence[Any]] = ()) -> bytes:
    """Return the arrays of all samples, and an engine's outputs if given, as a .npz; the same bytes each time."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for number, sample in enumerate(samples):
        for kind, group in (("input", sample.inputs), ("expected", sample.expected)):
            arrays |= {f"{number}.{kind}.{index}": array for index, array in enumerate(group)}
    for number, outputs in enumerate(actual):
        arrays |= {f"{number}.actual.{index}": array for index, array in enumerate(outputs)}
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _numbered(arrays: Any, prefix: str) -> tuple[Any, ...]:
    count = sum(name.startswith(prefix) for name in arrays.files)
    return tuple(arrays[f"{prefix}{index}"] for index in range(count))


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        put_in_place(target, lambda draft: _copy_into(draft, source), folder=source.is_dir())
    except OSError:
        if not target.exists():  # a folder that another worker placed meanwhile
            raise


def _copy_into(draft: Path, source: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, draft, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, draft)


__all__ = [
    "CheckEntry",
    "CheckInputs",
    "Manifest",
    "add_to_bundle",
    "finish_bundle",
    "npz_of",
    "read_bundles",
    "read_manifest",
    "read_samples",
    "start_bundle",
    "write_check",
    "write_manifest",
]
