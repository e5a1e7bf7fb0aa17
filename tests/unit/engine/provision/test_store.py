"""Provisioning, with pip as it is and a package index in a folder."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from t2n_core.engine import ResolvedEngine, resolve_engines
from t2n_core.engine.provision import resolution
from t2n_core.engine.provision import store as store_module
from t2n_core.engine.provision.index import forget_answers, list_versions
from t2n_core.engine.provision.store import EngineStore, default_cache_dir, platform_tag
from t2n_core.errors import EngineIndexWarning, EngineProvisionError, EngineResolveError
from tests.releases import NEWEST

if TYPE_CHECKING:
    from tests.local_index import LocalIndex

Calls = list[str]


def new_session() -> None:
    forget_answers()
    store_module._verified.clear()


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_an_engine_is_fetched_once_and_checked(local_index: LocalIndex, cache: Path, pip_calls: Calls) -> None:
    wheel = local_index.add("0.21.3", b"the library of 0.21.3")
    local_index.add("0.21.2", b"another")
    (engine,) = resolve_engines("0.21", cache_dir=cache)
    assert engine == ResolvedEngine(
        kind="wheel",
        version="0.21.3",
        library=cache / "engines" / "tract" / "0.21.3" / platform_tag() / "tract" / "tract.cpython-311.so",
        sha256=hashlib.sha256(b"the library of 0.21.3").hexdigest(),
        requested="0.21",
    )
    assert engine.library.read_bytes() == b"the library of 0.21.3"
    folder = engine.library.parents[1]
    assert files_below(folder) == {
        "manifest.json",
        "tract/tract.cpython-311.so",
        "tract.libs/libhelper.so",
        *(f"tract-0.21.3.dist-info/{name}" for name in ("METADATA", "WHEEL", "LICENSE", "RECORD")),
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] == "0.21.3"
    assert manifest["wheel"] == wheel.name
    assert manifest["wheel_sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert manifest["source"] == "pypi"
    for entry in manifest["files"]:
        content = (folder / entry["path"]).read_bytes()
        assert (entry["size"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert "://" not in (folder / "manifest.json").read_text()
    assert pip_calls == ["index", "install", "download"]
    assert {path.name for path in folder.parent.iterdir()} == {platform_tag(), f"{platform_tag()}.lock"}

    new_session()
    assert resolve_engines("0.21", cache_dir=cache) == [engine]
    assert pip_calls[3:] == ["index"]


def test_the_index_is_asked_once_per_process_and_not_for_exact_cached_versions(
    quick_index: LocalIndex, cache: Path, pip_calls: Calls
) -> None:
    for version in ("0.21.3", "0.22.4"):
        quick_index.add(version)
    first = resolve_engines("0.21,latest", cache_dir=cache)
    assert [engine.version for engine in first] == ["0.21.3", "0.22.4"]
    assert resolve_engines("0.22,0.21", cache_dir=cache) == [
        ResolvedEngine.from_dict({**engine.to_dict(), "requested": engine.version[:4]}) for engine in first
    ]
    assert pip_calls.count("index") == 1
    new_session()
    quick_index.vanish()
    assert [engine.version for engine in resolve_engines("0.21.3,0.22.4", cache_dir=cache)] == ["0.21.3", "0.22.4"]
    assert pip_calls.count("index") == 1


@pytest.mark.filterwarnings("ignore:`latest` is tract 0.22.4")
@pytest.mark.parametrize(
    ("spec", "stored", "selected", "asks"),
    [
        ("0.21", ["0.21.12"], ["0.21.12"], False),
        ("0.21", ["0.21.3"], ["0.21.12"], True),
        ("latest", ["0.22.4"], ["0.22.4"], False),
        ("all-minors", ["0.21.12", "0.22.4"], ["0.21.12", "0.22.4"], False),
        ("all-minors", ["0.22.4"], ["0.21.12", "0.22.4"], True),
        (">=0.21", ["0.21.12", "0.22.4"], ["0.21.3", "0.21.12", "0.22.4"], True),
        ("<0.21.5,0.22", ["0.21.3", "0.22.4"], ["0.21.3", "0.22.4"], False),
        ("0.22.5,0.22", ["0.22.4", "0.22.5"], ["0.22.5"], False),
    ],
)
def test_the_index_is_not_asked_where_it_cannot_change_the_choice(
    spec: str,
    stored: list[str],
    selected: list[str],
    asks: bool,
    quick_index: LocalIndex,
    cache: Path,
    pip_calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Known are 0.21.3, 0.21.12 and 0.22.4; the index has 0.22.5 as well, which only its exact name selects."""
    for version in ("0.21.3", "0.21.12", "0.22.4", "0.22.5"):
        quick_index.add(version)
    resolve_engines(",".join(stored), cache_dir=cache)
    new_session()
    pip_calls.clear()
    wheels = {"0.21.3": {}, "0.21.12": {}, "0.22.4": {}}
    for module in (store_module, resolution):
        monkeypatch.setattr(module, "known_wheels", lambda: wheels)
    engines = resolve_engines(spec, cache_dir=cache, allow_unlisted=True, fetch=False)
    assert [engine.version for engine in engines] == selected
    assert ("index" in pip_calls) is asks


def test_the_index_is_asked_where_the_engine_of_the_cache_is_damaged(
    quick_index: LocalIndex, cache: Path, pip_calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_index.add("0.21.3")
    (engine,) = resolve_engines("0.21.3", cache_dir=cache)
    (engine.library.parents[1] / "manifest.json").write_text("{")
    new_session()
    pip_calls.clear()
    monkeypatch.setattr(resolution, "known_wheels", lambda: {"0.21.3": {}})
    assert resolve_engines("0.21", cache_dir=cache)[0].version == "0.21.3"
    assert "index" in pip_calls


def test_engines_can_be_chosen_without_fetching_them(quick_index: LocalIndex, cache: Path, pip_calls: Calls) -> None:
    for version in ("0.21.3", "0.21.12", "0.22.4"):
        quick_index.add(version)
    chosen = resolve_engines("0.21,latest", cache_dir=cache, fetch=False)
    assert [(engine.version, engine.label, engine.requested) for engine in chosen] == [
        ("0.21.12", "0.21.12", "0.21"),
        ("0.22.4", "0.22.4", "latest"),
    ]
    assert pip_calls == ["index"]
    assert files_below(cache) == {"index.json"}
    with pytest.raises(EngineResolveError):
        resolve_engines("0.20", cache_dir=cache, fetch=False)
    fetched = resolve_engines("0.21,latest", cache_dir=cache)
    assert [(engine.version, engine.requested) for engine in fetched] == [
        (engine.version, engine.requested) for engine in chosen
    ]
    assert all(engine.library.is_relative_to(name.library) for engine, name in zip(fetched, chosen, strict=True))


def test_offline_after_a_fetch_needs_no_network(quick_index: LocalIndex, cache: Path, pip_calls: Calls) -> None:
    for version in ("0.21.3", "0.22.4", "0.23.0.dev5"):
        quick_index.add(version)
    online = resolve_engines("0.21", cache_dir=cache)
    quick_index.vanish()
    new_session()
    del pip_calls[:]
    assert resolve_engines("0.21", offline=True, cache_dir=cache) == online
    with pytest.raises(EngineProvisionError) as caught:
        resolve_engines("latest", offline=True, cache_dir=cache)
    assert "tract 0.22.4 is not in the cache, which has 0.21.3" in caught.value.message
    assert caught.value.hint == "run `t2n engines fetch 0.22.4` with a network first"
    assert pip_calls == []


@pytest.mark.parametrize(
    ("spec", "command"), [("0.21", "t2n engines fetch 0.21"), (">=0.21,<0.23", "t2n engines fetch '>=0.21,<0.23'")]
)
def test_offline_without_a_cache_says_what_to_run(spec: str, command: str, cache: Path) -> None:
    with pytest.raises(EngineResolveError) as caught:
        resolve_engines(spec, offline=True, cache_dir=cache)
    assert f"`{command}`" in (caught.value.hint or "")
    assert str(cache) in caught.value.message
    assert not cache.exists()


def test_offline_without_the_index_but_with_engines(quick_index: LocalIndex, cache: Path) -> None:
    quick_index.add("0.21.3")
    online = resolve_engines("0.21", cache_dir=cache)
    (cache / "index.json").unlink()
    new_session()
    assert resolve_engines("0.21", offline=True, cache_dir=cache) == online


def test_without_a_network_the_remembered_answer_is_used_with_a_warning(local_index: LocalIndex, cache: Path) -> None:
    local_index.add("0.21.3")
    online = resolve_engines("0.21", cache_dir=cache)
    local_index.vanish()
    new_session()
    with pytest.warns(EngineIndexWarning, match="the package index did not answer"):
        assert resolve_engines("0.21", cache_dir=cache) == online
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told once per process
        resolve_engines("0.21", cache_dir=cache)


def test_without_a_network_and_the_release_its_error_stands_alone(quick_index: LocalIndex, cache: Path) -> None:
    quick_index.add("0.21.3")
    quick_index.add("0.21.4")
    resolve_engines("0.21.3", cache_dir=cache)
    resolve_engines("0.21", cache_dir=cache, fetch=False)  # the index lists both
    quick_index.vanish()
    new_session()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(EngineProvisionError, match=r"tract 0\.21\.4 was not found"):
            resolve_engines("0.21.4", cache_dir=cache)


@pytest.mark.parametrize("content", ["", "{}", "[1, 2", '{"versions": 3}', '{"versions": [7]}'])
def test_without_a_network_and_a_usable_memory_it_is_an_error(
    content: str, quick_index: LocalIndex, cache: Path
) -> None:
    quick_index.vanish()
    cache.mkdir()
    (cache / "index.json").write_text(content)
    with pytest.raises(EngineResolveError, match="the package index returned no versions of tract"):
        resolve_engines("0.21", cache_dir=cache)


def test_an_unknown_version_downloads_nothing(quick_index: LocalIndex, cache: Path, pip_calls: Calls) -> None:
    quick_index.add("0.21.3")
    with pytest.raises(EngineResolveError, match=r"no release of tract matches '0\.21\.4'") as caught:
        resolve_engines("0.21.3,0.21.4", cache_dir=cache)
    assert caught.value.hint == "available in this line: 0.21.3"
    assert pip_calls == ["index"]


def test_one_engine_that_fails_leaves_the_others(quick_index: LocalIndex, cache: Path) -> None:
    quick_index.add("0.21.3")
    quick_index.add("0.22.4", stated_sha256="0" * 64)
    quick_index.add(NEWEST, stated_sha256="0" * 64)
    events: list[tuple[str, str]] = []
    with pytest.raises(EngineProvisionError, match="2 engines could not be provisioned") as caught:
        resolve_engines("all", cache_dir=cache, progress=lambda version, event: events.append((version, event)))
    assert "0.22.4" in caught.value.message
    assert NEWEST in caught.value.message
    assert [engine.manifest.version for engine in EngineStore(cache).list_stored()] == ["0.21.3"]
    assert {(v, e) for v, e in events if e != "downloading"} == {
        ("0.21.3", "ready"),
        ("0.22.4", "failed"),
        (NEWEST, "failed"),
    }


def test_two_processes_fetch_the_same_engine_once(local_index: LocalIndex, cache: Path, tmp_path: Path) -> None:
    local_index.add("0.21.3", os.urandom(1 << 20))
    log = tmp_path / "downloads"
    script = f"""
import os, sys
from t2n_core.engine import resolve_engines
from t2n_core.engine.provision import store
real = store.download_wheel
def download(version, folder):
    with open({str(log)!r}, "a") as file:
        file.write("one\\n")
    return real(version, folder)
store.download_wheel = download
store.known_wheels = dict
print(resolve_engines("0.21", cache_dir=store.Path({str(cache)!r}))[0].sha256)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(store_module.__file__).parents[3])}
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(set(answers)) == 1
    assert log.read_text() == "one\n"


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("T2N_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path
    assert EngineStore().cache_dir == tmp_path
    assert EngineStore(tmp_path / "other").cache_dir == tmp_path / "other"
    monkeypatch.delenv("T2N_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert default_cache_dir() == tmp_path / "xdg" / "t2n"


def test_versions_listed_with_pre_releases(local_index: LocalIndex, cache: Path) -> None:
    for version in ("0.21.3", "0.21.10", "0.23.0.dev5", "0.22.4"):
        local_index.add(version)
    assert [str(v) for v in list_versions(cache)] == ["0.21.3", "0.21.10", "0.22.4", "0.23.0.dev5"]
    (engine,) = resolve_engines("0.23.0.dev5", cache_dir=cache)
    assert engine.version == "0.23.0.dev5"


def test_a_resolved_engine_survives_the_wire(quick_index: LocalIndex, cache: Path) -> None:
    quick_index.add("0.21.3")
    (engine,) = resolve_engines("0.21", cache_dir=cache)
    assert ResolvedEngine.from_dict(json.loads(json.dumps(engine.to_dict()))) == engine
    assert engine.label == "0.21.3"
    with pytest.raises(ValueError, match="unknown kind"):
        ResolvedEngine.from_dict({**engine.to_dict(), "kind": "other"})


def test_exact_versions_that_are_there_are_found_without_a_look_at_all_others(
    local_index: LocalIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_index.add("0.21.3", b"the library of 0.21.3")
    (first,) = resolve_engines("0.21.3", cache_dir=cache)
    store = EngineStore(cache)
    assert store.has(Version("0.21.3"))
    assert not store.has(Version("0.21.4"))
    monkeypatch.setattr(EngineStore, "versions_on_disk", lambda self: pytest.fail("all versions were listed"))
    assert resolve_engines("0.21.3", cache_dir=cache) == [first]
    (first.library.parents[1] / "manifest.json").write_text("{")
    assert not store.has(Version("0.21.3"))
