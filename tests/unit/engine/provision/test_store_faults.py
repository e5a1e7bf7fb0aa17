"""Faults of the cache of engines: damaged files, wrong wheels, no space, no right to write, a lock that stays."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from t2n_core.engine import resolve_engines
from t2n_core.engine.provision import store as store_module
from t2n_core.engine.provision.index import WheelRecord, forget_answers
from t2n_core.engine.provision.known import KnownWheel, known_wheels
from t2n_core.engine.provision.store import EngineStore, platform_tag
from t2n_core.errors import EngineIndexWarning, EngineProvisionError, EngineResolveError
from tests.releases import NEWEST

if TYPE_CHECKING:
    from tests.unit.engine.conftest import LocalIndex

Calls = list[str]


def new_session() -> None:
    forget_answers()
    store_module._verified.clear()


def truncate(library: Path) -> None:
    library.write_bytes(library.read_bytes()[:-1])


def flip(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)


def lose_manifest(library: Path) -> None:
    (library.parents[1] / "manifest.json").unlink()


def halve_manifest(library: Path) -> None:
    manifest = library.parents[1] / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])


def empty_folder(library: Path) -> None:
    shutil.rmtree(library.parents[1])
    library.parents[1].mkdir()


def name_what_is_outside(library: Path) -> None:
    manifest = library.parents[1] / "manifest.json"
    content = json.loads(manifest.read_text())
    evil = library.parents[3] / "evil.so"
    evil.write_bytes(library.read_bytes())
    name = f"../../{evil.name}"
    manifest.write_text(json.dumps(content).replace(content["library"], name))


def deepen_manifest(library: Path) -> None:
    (library.parents[1] / "manifest.json").write_bytes(b"[" * 200_000)


def garble_manifest(library: Path) -> None:
    (library.parents[1] / "manifest.json").write_bytes(b'{"version": "\xff\xfe"}')


def rename_version(library: Path) -> None:
    manifest = library.parents[1] / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"0.21.3"', '"no version"'))


def pipe_manifest(library: Path) -> None:
    (library.parents[1] / "manifest.json").unlink()
    os.mkfifo(library.parents[1] / "manifest.json")


def link_elsewhere(library: Path) -> None:
    library.rename(library.parents[3] / "other.so")
    library.symlink_to(library.parents[3] / "other.so")


def open_to_all(library: Path) -> None:
    library.parents[1].chmod(0o777)


def lose_helper(library: Path) -> None:
    (library.parents[1] / "tract.libs" / "libhelper.so").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "tract/tract.cpython-311.so has 9999 bytes, expected 10000"),
        (flip, "tract/tract.cpython-311.so does not have the sha256 of its manifest"),
        (Path.unlink, "'tract/tract.cpython-311.so' cannot be read"),
        (lose_helper, "'tract.libs/libhelper.so' cannot be read"),
        (lose_manifest, "it has no manifest.json"),
        (halve_manifest, "its manifest.json cannot be read"),
        (empty_folder, "it has no manifest.json"),
        (name_what_is_outside, "is not the name of a file inside the folder"),
        (deepen_manifest, "its manifest.json cannot be read"),
        (garble_manifest, "its manifest.json cannot be read"),
        (rename_version, "its manifest.json is that of tract 'no version'"),
        (pipe_manifest, "manifest.json is not a regular file"),
        (link_elsewhere, "is a link that leads out of the folder"),
        (open_to_all, "is world-writable"),
    ],
)
def test_a_damaged_engine_is_told_offline_and_mended_online(
    damage: Callable[[Path], None], message: str, quick_index: LocalIndex, cache: Path, pip_calls: Calls
) -> None:
    quick_index.add("0.21.3", b"0123456789" * 1000)
    (engine,) = resolve_engines("0.21", cache_dir=cache)
    damage(engine.library)
    new_session()
    for has_index in (True, False):
        if not has_index:
            (cache / "index.json").unlink()
        with pytest.raises(EngineProvisionError) as caught:
            resolve_engines("0.21", offline=True, cache_dir=cache)
        assert "damaged" in caught.value.message
        assert message in caught.value.message
    assert "t2n engines fetch 0.21.3" in (caught.value.hint or "")
    del pip_calls[:]
    assert resolve_engines("0.21", cache_dir=cache) == [engine]
    assert engine.library.read_bytes() == b"0123456789" * 1000
    assert pip_calls == ["index", "install", "download"]
    assert not list(engine.library.parents[2].glob(".*"))


def test_what_a_killed_process_left_is_swept(quick_index: LocalIndex, cache: Path) -> None:
    quick_index.add("0.21.3")
    left = cache / "engines" / "tract" / "0.21.3" / f".{platform_tag()}-dead" / "engine"
    left.mkdir(parents=True)
    (left / "half a library").write_bytes(b"x")
    (engine,) = resolve_engines("0.21", cache_dir=cache)
    assert engine.library.exists()
    assert not left.parent.exists()


def test_a_wheel_other_than_the_index_states_is_refused_by_pip(local_index: LocalIndex, cache: Path) -> None:
    local_index.add("0.21.3", stated_sha256="0" * 64)
    with pytest.raises(EngineProvisionError, match="HASH"):
        resolve_engines("0.21", cache_dir=cache)
    assert EngineStore(cache).versions_on_disk() == []


def test_a_wheel_other_than_the_index_states_is_refused_by_us(
    quick_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if something between pip's download and our unpacking changed the file."""
    quick_index.add("0.21.3")

    def download(version: Version, folder: Path) -> Path:
        return Path(shutil.copy(next(quick_index.root.rglob("*.whl")), folder))

    real = store_module.wheel_record
    monkeypatch.setattr(store_module, "download_wheel", download)
    monkeypatch.setattr(
        store_module, "wheel_record", lambda version, folder: WheelRecord(real(version, folder).filename, "1" * 64)
    )
    with pytest.raises(EngineProvisionError, match="is not what the index announced") as caught:
        resolve_engines("0.21", cache_dir=cache)
    assert "1" * 64 in caught.value.message
    assert EngineStore(cache).versions_on_disk() == []


def test_a_wheel_that_is_no_archive(local_index: LocalIndex, cache: Path) -> None:
    wheel = local_index.add("0.21.3")
    content = wheel.read_bytes()
    wheel.write_bytes(content[:200])
    page = wheel.with_name("index.html")
    good, bad = (hashlib.sha256(data).hexdigest() for data in (content, content[:200]))
    page.write_text(page.read_text().replace(good, bad))
    with pytest.raises(EngineProvisionError, match=r"tract 0\.21\.3"):
        resolve_engines("0.21", cache_dir=cache)
    assert EngineStore(cache).versions_on_disk() == []


@pytest.fixture
def read_only_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """As root, permissions stop nobody: the calls that would write fail instead."""

    def protect() -> None:
        real_mkdir, real_open = Path.mkdir, os.open

        def mkdir(self: Path, *args: object, **kwargs: object) -> None:
            if self.is_relative_to(cache) and not self.exists():
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
            real_mkdir(self, *args, **kwargs)  # type: ignore[arg-type]

        def open_(path: object, flags: int, *args: object, **kwargs: object) -> int:
            if str(path).startswith(str(cache)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real_open(path, flags, *args, **kwargs)  # type: ignore[arg-type, call-overload]

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(os, "open", open_)

    return protect


def test_a_read_only_cache_with_the_engine_works(
    quick_index: LocalIndex, cache: Path, read_only_cache: Callable[[], None]
) -> None:
    quick_index.add("0.21.3")
    quick_index.add("0.22.4")
    online = resolve_engines("0.21", cache_dir=cache)
    new_session()
    read_only_cache()
    assert resolve_engines("0.21", cache_dir=cache) == online
    with pytest.raises(EngineProvisionError, match="could not be stored under") as caught:
        resolve_engines("0.22", cache_dir=cache)
    assert "Permission denied" in caught.value.message
    assert "T2N_CACHE_DIR" in (caught.value.hint or "")


def test_a_full_disk_is_told_and_leaves_nothing(
    quick_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_index.add("0.21.3")

    def copy(source: object, sink: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module.shutil, "copyfileobj", copy)
    with pytest.raises(EngineProvisionError, match="No space left on device"):
        resolve_engines("0.21", cache_dir=cache)
    assert EngineStore(cache).versions_on_disk() == []
    assert not list((cache / "engines" / "tract" / "0.21.3").glob(".*"))


def test_a_lock_that_is_never_released_is_told(
    quick_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from filelock import FileLock

    quick_index.add("0.21.3")
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT", 0.2)
    lock = cache / "engines" / "tract" / "0.21.3" / f"{platform_tag()}.lock"
    lock.parent.mkdir(parents=True)
    with FileLock(lock), pytest.raises(EngineProvisionError, match="another process has been") as caught:
        resolve_engines("0.21", cache_dir=cache)
    assert str(lock) in (caught.value.hint or "")


def test_members_of_a_wheel_that_point_elsewhere_stay_there(quick_index: LocalIndex, cache: Path) -> None:
    import zipfile

    wheel = quick_index.add("0.21.3")
    before = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel, "a") as archive:
        for ups in range(1, 9):
            archive.writestr(f"tract.libs/{'../' * ups}escaped.so", b"x")
        archive.writestr(f"{cache.parent}/tract.libs/escaped.so", b"x")
    page = wheel.with_name("index.html")
    page.write_text(page.read_text().replace(before, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    (engine,) = resolve_engines("0.21", cache_dir=cache)
    assert not list(cache.parent.rglob("escaped*"))
    assert engine.library.exists()


def test_what_is_known_of_a_release_is_checked(
    quick_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = quick_index.add("0.21.3", b"0123456789" * 1000)
    digests = [hashlib.sha256(content).hexdigest() for content in (wheel.read_bytes(), b"0123456789" * 1000)]
    wheels = {"0.21.3": {wheel.name: KnownWheel(*digests), "tract-0.21.3-other.whl": KnownWheel("0" * 64)}}
    monkeypatch.setattr(store_module, "known_wheels", lambda: wheels)
    (engine,) = resolve_engines("0.21.3", cache_dir=cache)
    engine.library.parents[1].chmod(0o777)
    new_session()
    resolve_engines("0.21.3", cache_dir=cache, offline=True)  # its digest is known, whoever may write there
    manifest = engine.library.parents[1] / "manifest.json"
    manifest_text = manifest.read_text()
    for replaced, message in (
        (digests[0], "is not one of the released wheels"),
        (wheel.name, "is not one of the released"),
    ):
        manifest.write_text(manifest_text.replace(replaced, "1" * 64))
        new_session()
        with pytest.raises(EngineProvisionError, match=message):
            resolve_engines("0.21.3", cache_dir=cache, offline=True)
    flip(engine.library)
    changed = hashlib.sha256(engine.library.read_bytes()).hexdigest()
    manifest.write_text(manifest_text.replace(digests[1], changed))
    new_session()
    with pytest.raises(EngineProvisionError, match="is not the library of the released wheel"):
        resolve_engines("0.21.3", cache_dir=cache, offline=True)
    wheels["0.21.3"] = {wheel.name: KnownWheel("1" * 64)}
    shutil.rmtree(cache)
    new_session()
    with pytest.raises(EngineProvisionError, match="is no released wheel"):
        resolve_engines("0.21.3", cache_dir=cache)
    assert not list(cache.rglob("*.so")), "nothing is kept"


def test_a_version_without_known_digests_is_taken_by_its_name_alone_and_where_that_is_allowed(
    quick_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = quick_index.add("0.21.3")
    for version in ("0.21.4", "0.21.3.post1", "0.22.0"):
        quick_index.add(version)
    wheels = {"0.21.3": {wheel.name: KnownWheel(hashlib.sha256(wheel.read_bytes()).hexdigest())}}
    monkeypatch.setattr(store_module, "known_wheels", lambda: wheels)
    with pytest.warns(EngineIndexWarning, match=r"`latest` is tract 0\.21\.3, .*; the index has 0\.22\.0"):
        resolve_engines("latest", cache_dir=cache)
    with pytest.warns(EngineIndexWarning, match="the index has 0"):  # by its last answer
        resolve_engines("latest", cache_dir=cache, offline=True)
    for spec in ("0.21", ">=0.21", "all", "0.21.3"):
        for allowed in (False, True):
            assert [engine.version for engine in resolve_engines(spec, cache_dir=cache, allow_unlisted=allowed)] == [
                "0.21.3"
            ]
    with pytest.raises(EngineResolveError, match=r"tract 0\.22\.0 is newer than what .* knows, 0\.21\.3"):
        resolve_engines("0.22.0", cache_dir=cache)
    (engine,) = resolve_engines("0.22.0", cache_dir=cache, allow_unlisted=True)
    assert engine.requested == "0.22.0, unlisted"
    new_session()
    with pytest.raises(EngineResolveError, match="is newer than"):  # also where the cache has it
        resolve_engines("0.22.0", cache_dir=cache, offline=True)
    monkeypatch.setenv("T2N_ALLOW_UNLISTED", "1")
    assert resolve_engines("0.22.0", cache_dir=cache, offline=True) == [engine]
    monkeypatch.setenv("T2N_ALLOW_UNLISTED", "0")
    with pytest.raises(EngineResolveError, match=r"tract 0\.22\.0 is newer than") as caught:
        resolve_engines("0.22", cache_dir=cache)
    assert "name 0.22.0 in place of 0.22 with --t2n-allow-unlisted" in str(caught.value)


@pytest.mark.parametrize("spec", ["0.99", ">=0.99", "0.99.0"])
def test_a_release_that_is_newer_than_this_version_is_named_as_such(
    spec: str, quick_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "known_wheels", known_wheels)
    quick_index.add("0.99.0")
    newest = max(map(Version, known_wheels()))
    with pytest.raises(EngineResolveError, match=rf"tract 0\.99\.0 is newer than what .* knows, {newest}") as caught:
        resolve_engines(spec, cache_dir=cache)
    assert f"they run with the tables of {newest}" in str(caught.value)


def test_releases_of_the_package_are_known() -> None:
    wheels = known_wheels()
    assert len(wheels) >= 54
    assert all(len(wheel.sha256) == 64 for files in wheels.values() for wheel in files.values())
    for version in ("0.19.15", "0.21.19", NEWEST):
        names = " ".join(wheels[version])
        assert all(word in names for word in ("macosx", "win_amd64", "manylinux"))
        assert sum(bool(wheel.library) for wheel in wheels[version].values()) == 1
