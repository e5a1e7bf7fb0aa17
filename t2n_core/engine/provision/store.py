"""The cache of engines on this machine.

    <cache>/index.json                               what the index last reported
    <cache>/engines/tract/<version>/<platform>/      the library, licences, manifest.json
    <cache>/engines/tract/<version>/<platform>.lock

An engine appears under its final name only when it is complete: it is unpacked next to it, checked, flushed and
renamed. Two processes that need the same one take turns. An existing engine is checked against its manifest once per
process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import msgspec
import platformdirs
from filelock import FileLock, Timeout
from packaging import tags
from packaging.version import InvalidVersion, Version

from t2n_core.engine.provision.index import download_wheel, wheel_record
from t2n_core.engine.provision.known import known_wheels
from t2n_core.errors import EngineProvisionError
from t2n_core.files import file_sha256
from t2n_core.foreign import ForeignFileError, decode_json, inside, read_file
from t2n_core.text import clip

Progress = Callable[[str, str], None]
"""Called with a version and what happens to it: `downloading`, `ready` or `failed`; from several threads."""

LOCK_TIMEOUT = 900.0
"""Seconds to wait for another process that provisions the same engine."""
_PARALLEL_DOWNLOADS = 4
_MOST_MANIFEST = 1 << 20
_LIBRARY_SUFFIXES = (".so", ".pyd", ".dylib")
_verified: set[Path] = set()


class FileEntry(msgspec.Struct, frozen=True):
    """One file of an engine; `path` is relative to the engine's folder, with `/`."""

    path: str
    sha256: str
    size: int


class Manifest(msgspec.Struct, frozen=True):
    """The content of an engine's `manifest.json`: the files of its folder, and the wheel that they come from."""

    version: str
    wheel: str
    wheel_sha256: str
    library: str
    files: tuple[FileEntry, ...]
    source: str = "pypi"

    @property
    def library_sha256(self) -> str:
        return next(entry.sha256 for entry in self.files if entry.path == self.library)


class StoredEngine(msgspec.Struct, frozen=True):
    """An engine's folder with a manifest that can be read."""

    folder: Path
    manifest: Manifest

    @property
    def library(self) -> Path:
        return self.folder / self.manifest.library


class _DamagedError(Exception):
    """Raised for a cache entry that does not match its manifest; the message states where."""


def default_cache_dir() -> Path:
    """Return `T2N_CACHE_DIR`, or the platform's cache directory of the user."""
    if chosen := os.environ.get("T2N_CACHE_DIR"):
        return Path(chosen).absolute()
    return Path(platformdirs.user_cache_dir("t2n", appauthor=False))


@functools.cache
def platform_tag() -> str:
    """Return the kind of library that this interpreter can load, coarser than a wheel's tag: `linux_x86_64`."""
    names = list(tags.platform_tags())
    if sys.platform == "linux":
        libc = "_musl" if any(name.startswith("musllinux") for name in names) else ""
        return next(name for name in names if name.startswith("linux_")) + libc
    if sys.platform == "darwin":
        return f"macosx_{platform.machine()}"
    return names[0]


class EngineStore:
    """The cache under one directory."""

    def __init__(self, cache_dir: Path | None = None) -> None:
        self.cache_dir = (cache_dir or default_cache_dir()).absolute()

    def folder(self, version: Version) -> Path:
        return self.cache_dir / "engines" / "tract" / str(version) / platform_tag()

    def has(self, version: Version) -> bool:
        """Return True if there is an engine of this version with a readable manifest; its contents are not checked."""
        try:
            _open_entry(self.folder(version))
        except _DamagedError:
            return False
        return True

    def list_stored(self) -> list[StoredEngine]:
        """Return every engine of this platform with a readable manifest, ascending; contents are not checked."""
        stored = []
        for version in self.versions_on_disk():
            with contextlib.suppress(_DamagedError):
                stored.append(_open_entry(self.folder(version)))
        return stored

    def versions_on_disk(self) -> list[Version]:
        """Return every version with a folder for this platform, damaged ones too, ascending."""
        versions = []
        root = self.cache_dir / "engines" / "tract"
        for folder in root.iterdir() if root.is_dir() else ():
            with contextlib.suppress(InvalidVersion):
                versions.append(Version(folder.name))
        return sorted(version for version in versions if self.folder(version).is_dir())

    def remove(self, version: Version) -> None:
        """Delete one engine. Raises EngineProvisionError if that fails."""
        folder = self.folder(version)
        with _clear_errors(version, folder), self._lock(version):
            _verified.discard(folder)
            shutil.rmtree(folder)

    def fetch_many(
        self, versions: Iterable[Version], *, offline: bool = False, progress: Progress | None = None
    ) -> list[StoredEngine]:
        """Provision all, some in parallel, and return them in the given order.

        Raises EngineProvisionError, which names each failed version; the others stay in the cache.
        """
        report = progress or (lambda version, event: None)
        version_list = list(versions)
        if len(version_list) == 1:
            return [self._fetch_reporting(version_list[0], offline, report)]
        with ThreadPoolExecutor(_PARALLEL_DOWNLOADS, thread_name_prefix="t2n fetch") as pool:
            futures = [pool.submit(self._fetch_reporting, version, offline, report) for version in version_list]
        failures = [failure for future in futures if isinstance(failure := future.exception(), EngineProvisionError)]
        if len(failures) > 1:
            text = "\n".join(f"- {failure}".replace("\n", "\n  ") for failure in failures)
            raise EngineProvisionError(f"{len(failures)} engines could not be provisioned:\n{text}")
        return [future.result() for future in futures]

    def _fetch_reporting(self, version: Version, offline: bool, report: Progress) -> StoredEngine:
        try:
            stored = self.fetch(version, offline=offline, on_download=lambda: report(str(version), "downloading"))
        except EngineProvisionError:
            report(str(version), "failed")
            raise
        report(str(version), "ready")
        return stored

    def fetch(
        self, version: Version, *, offline: bool = False, on_download: Callable[[], None] | None = None
    ) -> StoredEngine:
        """Return one engine, from the cache if intact, otherwise from the index. Raises EngineProvisionError."""
        folder = self.folder(version)
        try:
            return _verify(folder)
        except _DamagedError as damage:
            if offline:
                raise self._offline_error(version, folder, damage) from damage
        with _clear_errors(version, folder), self._lock(version):
            with contextlib.suppress(_DamagedError):
                return _verify(folder)  # another process was faster
            if on_download:
                on_download()
            self._provision(version, folder)
        try:
            return _verify(folder)
        except _DamagedError as damage:
            raise EngineProvisionError(f"tract {version} was written to {folder}, but {damage}") from damage

    def _offline_error(self, version: Version, folder: Path, damage: Exception) -> EngineProvisionError:
        fetch = f"run `t2n engines fetch {version}` with a network first"
        if folder.exists():
            return EngineProvisionError(f"the cached tract {version} in {folder} is damaged: {damage}", hint=fetch)
        have = ", ".join(stored.manifest.version for stored in self.list_stored()) or "nothing"
        return EngineProvisionError(f"tract {version} is not in the cache, which has {have}", hint=fetch)

    @contextlib.contextmanager
    def _lock(self, version: Version) -> Iterator[None]:
        folder = self.folder(version)
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f"{folder.name}.lock")
        try:
            with FileLock(lock, timeout=LOCK_TIMEOUT):
                yield
        except Timeout as cause:
            raise EngineProvisionError(
                f"another process has been provisioning tract {version} for {LOCK_TIMEOUT:.0f} s",
                hint=f"if none is, delete {lock}",
            ) from cause

    def _provision(self, version: Version, folder: Path) -> None:
        """Fetch, check and unpack a release under the lock; unfinished files here belong to a process that died."""
        for left_over in folder.parent.glob(f".{folder.name}-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch_name:
            scratch = Path(scratch_name)
            downloads, draft, old = scratch / "download", scratch / "engine", scratch / "old"
            downloads.mkdir()
            record = wheel_record(version, scratch / "target")
            wheel = download_wheel(version, downloads)
            digest = file_sha256(wheel)
            if digest != record.sha256 or wheel.name != record.filename:
                raise EngineProvisionError(
                    f"the download of tract {version} is not what the index announced: "
                    f"{wheel.name} has sha256 {digest}, expected {record.filename} with {record.sha256}",
                    hint="nothing was kept; try again, and if it stays so, ask who runs your mirror or proxy",
                )
            released = known_wheels().get(str(version), {})
            if released and digest not in {known_wheel.sha256 for known_wheel in released.values()}:
                raise EngineProvisionError(
                    f"the download of tract {version} is no released wheel: {wheel.name} has sha256 {digest}",
                    hint="nothing was kept; your own build can be used through its command line, path:/to/tract",
                )
            _unpack(version, wheel, record.sha256, draft)
            if folder.exists():
                os.replace(folder, old)  # the damaged one: a folder cannot be renamed onto another
            os.replace(draft, folder)
            _sync_folder(folder.parent)


@contextlib.contextmanager
def _clear_errors(version: Version, folder: Path) -> Iterator[None]:
    """Raise a short EngineProvisionError for a full disk or a cache without write permission."""
    try:
        yield
    except OSError as cause:
        raise EngineProvisionError(
            f"tract {version} could not be stored under {folder}: {cause.strerror or cause}",
            hint="make room or make it writable, or choose another place with T2N_CACHE_DIR",
        ) from cause


def _unpack(version: Version, wheel: Path, wheel_sha256: str, draft: Path) -> None:
    """Unpack the library, libraries bundled with it, and licences, but not the wheel's Python code."""
    draft.mkdir()
    entries = []
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if _is_wanted(name)]
            for name in names:
                target = draft.joinpath(*PurePosixPath(name).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
                    sink.flush()
                    os.fsync(sink.fileno())
                entries.append(FileEntry(name, file_sha256(target), target.stat().st_size))
    except (zipfile.BadZipFile, EOFError) as cause:
        raise EngineProvisionError(f"the wheel of tract {version} cannot be unpacked: {cause}") from cause
    libraries = [entry.path for entry in entries if entry.path.startswith("tract/")]
    if len(libraries) != 1:
        raise EngineProvisionError(f"{wheel.name} has {len(libraries)} libraries, one was expected")
    manifest = Manifest(str(version), wheel.name, wheel_sha256, libraries[0], tuple(entries))
    with (draft / "manifest.json").open("wb") as sink:
        sink.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        sink.flush()
        os.fsync(sink.fileno())
    _sync_folder(draft)


def _is_wanted(name: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name.endswith("/"):
        return False
    if path.parts[0] == "tract":
        return len(path.parts) == 2 and path.suffix in _LIBRARY_SUFFIXES
    return path.parts[0].endswith((".libs", ".dist-info"))


def _open_entry(folder: Path) -> StoredEngine:
    try:
        manifest = decode_json(read_file(folder / "manifest.json", _MOST_MANIFEST), Manifest, "manifest.json")
    except FileNotFoundError:
        raise _DamagedError("it has no manifest.json") from None
    except (OSError, ForeignFileError) as cause:
        raise _DamagedError(f"its manifest.json cannot be read ({cause})") from cause
    if manifest.library not in {entry.path for entry in manifest.files}:
        raise _DamagedError("its manifest.json names no library")
    if manifest.version != folder.parent.name:
        raise _DamagedError(f"its manifest.json is that of tract {clip(manifest.version, 40)!r}")
    return StoredEngine(folder, manifest)


def _verify(folder: Path) -> StoredEngine:
    """Return the engine after a comparison with its manifest, once per process. Raises _DamagedError."""
    stored = _open_entry(folder)
    if folder in _verified and stored.library.exists():
        return stored
    if not _is_released(stored.manifest):
        _refuse_shared(folder)
    for entry in stored.manifest.files:
        try:
            path = inside(folder, entry.path)
            if path.stat().st_size != entry.size:
                raise _DamagedError(f"{entry.path} has {path.stat().st_size} bytes, expected {entry.size}")
            if file_sha256(path) != entry.sha256:
                raise _DamagedError(f"{entry.path} does not have the sha256 of its manifest")
        except OSError as cause:
            raise _DamagedError(f"{entry.path} cannot be read ({cause.strerror})") from cause
        except ForeignFileError as cause:
            raise _DamagedError(str(cause)) from cause
    _verified.add(folder)
    return stored


def is_listed(version: Version) -> bool:
    """Return whether the digests of a release are known, so that a wheel of this version can be checked."""
    wheels = known_wheels()
    return not wheels or str(version) in wheels


def newest_listed() -> Version:
    """Return the newest release whose digests are known; there is one wherever `is_listed` is false."""
    return max(map(Version, known_wheels()))


def _is_released(manifest: Manifest) -> bool:
    """Return whether the library is known to be its release's. Raises _DamagedError if it is known not to be."""
    released = known_wheels().get(manifest.version, {})
    wheel = released.get(manifest.wheel)
    if released and (wheel is None or wheel.sha256 != manifest.wheel_sha256):
        raise _DamagedError(f"{manifest.wheel} is not one of the released wheels")
    if wheel is None or not wheel.library:
        return False
    if manifest.library_sha256 != wheel.library:
        raise _DamagedError(f"{manifest.library} is not the library of the released wheel")
    return True


def _refuse_shared(folder: Path) -> None:
    """Raise _DamagedError if the folder of an engine whose digest is not known is world-writable."""
    if os.name == "posix" and folder.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
        raise _DamagedError(f"{folder} is world-writable: chmod o-w")


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
