"""Read bundles as untrusted files: a damaged one is reported by its name, and invalidates only its own checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pytest_t2n.records.nodeids import case_id
from pytest_t2n.records.schema import PlatformLine, RecordError
from pytest_t2n.run.bundles import ENTRIES, MANIFEST, SCHEMA, CheckEntry
from t2n_core.errors import T2NError
from t2n_core.files import file_sha256
from t2n_core.foreign import ForeignFileError, decode_json, inside, read_file, refuse_strange_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from t2n_core.parity.samples import Sample

_MOST_MANIFEST = 1 << 30
_DIGEST = re.compile(r"([0-9a-f]{64})(\.\w+)?")
_Kind = TypeVar("_Kind")


class BundleError(T2NError):
    """A file of a bundle that is damaged, or does not belong to it."""

    stage = "load"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The checks of a bundle that can be read."""

    checks: Sequence[CheckEntry]
    exporter: PlatformLine
    """The platform of the export."""
    problems: Sequence[str] = ()
    """The checks that cannot be read, by file and number, with the reasons."""
    unfinished: str = ""
    """The reason why checks are missing: its session was interrupted."""


class _Manifest(msgspec.Struct):
    schema: int
    platform: PlatformLine
    checks: list[msgspec.Raw]
    unfinished: str = ""


def bundle_folders(directory: Path) -> list[Path]:
    """Return the folder itself if it is a bundle, otherwise the bundles directly inside it."""
    if (directory / MANIFEST).exists():
        return [directory]
    return sorted(path.parent for path in directory.glob(f"*/{MANIFEST}"))


def read_bundles(directory: Path) -> Bundle:
    """Return the checks of a bundle, or of all bundles in a folder, as written by `--t2n-bundle-failures`.

    Raises RecordError.
    """
    folders = bundle_folders(directory)
    if folders in ([], [directory]):
        return read_bundle(directory)
    bundles: dict[str, Bundle] = {}
    problems: list[str] = []
    for folder in folders:
        try:
            bundles[folder.name] = read_bundle(folder)
        except RecordError as exc:
            problems.append(str(exc))
    if not bundles:
        raise RecordError("; ".join(problems))
    checks = [
        msgspec.structs.replace(check, archive=f"{name}/{check.archive}", samples=f"{name}/{check.samples}")
        for name, bundle in bundles.items()
        for check in bundle.checks
    ]
    problems += [problem for bundle in bundles.values() for problem in bundle.problems]
    first = next(iter(bundles.values()))
    unfinished = next((bundle.unfinished for bundle in bundles.values() if bundle.unfinished), "")
    return replace(first, checks=checks, problems=problems, unfinished=unfinished)


def read_bundle(directory: Path) -> Bundle:
    """Return the checks of a bundle; after an interrupted session, the checks it wrote. Raises RecordError.

    A check that cannot be read is added to the problems.
    """
    path = directory / MANIFEST
    try:
        manifest = decode_json(read_file(path, _MOST_MANIFEST), _Manifest, str(path))
    except OSError as exc:
        made = f"; `t2n bundle {directory} --format matrix -o bundle` makes one of a folder of archives"
        there = directory.is_dir() and not path.exists()
        why = f"it has no {MANIFEST}{made}" if there else exc.strerror
        raise RecordError(f"{directory} is not a bundle: {why}") from None
    except ForeignFileError as exc:
        raise RecordError(str(exc)) from None
    if manifest.schema > SCHEMA:
        raise RecordError(f"{path}: schema {manifest.schema}, but this version reads up to {SCHEMA}")
    problems: list[str] = []
    checks = [
        check
        for number, text in enumerate(manifest.checks, 1)
        if (check := _check_of(bytes(text), f"{path}: check {number}", problems)) is not None
    ]
    if manifest.unfinished:
        checks += [check for check in _unfinished_checks(directory / ENTRIES, problems) if check not in checks]
    return Bundle(checks, manifest.platform, problems, manifest.unfinished)


def read_samples(directory: Path, entry: CheckEntry) -> tuple[list[Sample], list[Sample]]:
    """Return a check's samples, and the samples that the engine has to refuse. Raises BundleError."""
    from t2n_core.npz import read_npz
    from t2n_core.parity.samples import Sample

    samples_digest(directory, entry.samples)
    try:
        arrays = read_npz(_own_file(directory, entry.samples))
    except (OSError, ForeignFileError) as exc:
        raise BundleError(f"{entry.samples}: {exc}") from None
    groups: dict[str, dict[int, NDArray[Any]]] = {}
    for name, array in arrays.items():
        group, _, index = name.rpartition(".")
        if index.isdecimal():
            groups.setdefault(group, {})[int(index)] = array
    samples = [
        Sample(_group(groups, f"{number}.input", entry), _group(groups, f"{number}.expected", entry), sizes)
        for number, sizes in enumerate(entry.sizes)
    ]
    outside = [
        Sample(_group(groups, f"{number}.outside", entry), (), sizes, "outside")
        for number, sizes in enumerate(entry.outside)
    ]
    return samples, outside


def samples_digest(directory: Path, name: str) -> str:
    """Return the SHA-256 of a sample file. Raises BundleError if its name has another digest."""
    try:
        digest = file_sha256(_own_file(directory, name))
    except OSError as exc:
        raise BundleError(f"{name}: {exc}") from None
    if _digest_in(name) not in ("", digest):
        raise _damaged_error(name)
    return digest


def archive_of(directory: Path, name: str) -> Path:
    """Return the path of an archive after verifying its digest. Raises BundleError."""
    from t2n_core.files import archive_digest

    path = _own_file(directory, name)
    try:
        if path.is_dir():
            refuse_strange_files(path)
        digest = _digest_in(name)
        if digest and digest != archive_digest(path)[0]:
            raise _damaged_error(name)
    except (OSError, ForeignFileError) as exc:
        raise BundleError(f"{name}: {exc}") from None
    return path


def _check_of(text: bytes, where: str, problems: list[str]) -> CheckEntry | None:
    """Return the check; None, with the reason among the problems, if it is invalid."""
    try:
        check = decode_json(text, CheckEntry, where)
    except ForeignFileError as exc:
        problems.append(str(exc))
        return None
    if not check.engine_id or case_id(check.nodeid, check.engine_id) != check.case:
        problems.append(f"{where}: {check.nodeid!r} is not a node id of {check.case!r} on {check.engine_id!r}")
        return None
    return check


def _unfinished_checks(folder: Path, problems: list[str]) -> Iterable[CheckEntry]:
    for path in sorted(folder.glob("*.json")):
        try:
            check = _check_of(read_file(path, _MOST_MANIFEST), str(path), problems)
        except (OSError, ForeignFileError) as exc:
            problems.append(f"{path}: {exc}")
            continue
        if check is not None:
            yield check


def _own_file(directory: Path, name: str) -> Path:
    """Return the path of a file or folder of the bundle. Raises BundleError."""
    try:
        path = inside(directory, name)
        if not path.is_file() and not path.is_dir():
            raise ForeignFileError(f"{name!r} is neither a file nor a folder")
    except (OSError, ForeignFileError) as exc:
        raise BundleError(f"the bundle has no such file: {exc}") from None
    return path


def _digest_in(name: str) -> str:
    """Return the SHA-256 in a name; empty for a name without one."""
    match = _DIGEST.fullmatch(name.rpartition("/")[2])
    return match[1] if match else ""


def _damaged_error(name: str) -> BundleError:
    return BundleError(
        f"{name} is damaged: its SHA-256 differs from that in its name",
        hint="copy the bundle again; the engine did not run",
    )


def _group(groups: dict[str, dict[int, NDArray[Any]]], name: str, entry: CheckEntry) -> tuple[NDArray[Any], ...]:
    arrays = groups.get(name, {})
    if (not arrays and not name.endswith("input")) or any(index not in arrays for index in range(len(arrays))):
        raise BundleError(f"{entry.samples} has no arrays {name}.0, …")
    return tuple(arrays[index] for index in range(len(arrays)))
