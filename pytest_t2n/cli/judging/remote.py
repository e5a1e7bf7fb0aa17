"""The work on another machine: the report of its host, and units whose files are sent along or come from a store.

Long-lived workers keep the modules that they have loaded, so each reports its code.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import time
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from pytest_t2n.cli.judging.code import digest_of_code
from pytest_t2n.cli.judging.unit import JudgedUnit, Unit, judge, pack_unit
from pytest_t2n.config.engines import select_engines
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.schema import PlatformLine
from t2n_core.engine.processes.memory import machine_memory
from t2n_core.engine.provision.store import default_cache_dir
from t2n_core.files import write_whole
from t2n_core.scratch import scratch_folder
from t2n_core.text import text_of

_STORED = re.compile(r"[a-z]+/([0-9a-f]{64})(?:\.[a-z]+)?")
"""Names of files with their digests, as written by `--t2n-bundle`."""
_PAUSE = 2.0


class WrongHostError(Exception):
    """A worker cannot judge a unit, but another may."""

    @property
    def worker(self) -> str:
        """Return the address of the worker."""
        return str(self.args[1])


class WantedEngines(msgspec.Struct, frozen=True):
    """The engines of a run, as in the options."""

    tract: tuple[str, ...]
    cpu: str = ""
    runtime: str = ""
    paths: str = ""
    khronos: bool = False
    offline: bool = False


class HostReport(msgspec.Struct, frozen=True):
    """The state of a worker."""

    host: str
    code: str
    """Digest of the code of both packages."""
    platform: PlatformLine
    engines: list[dict[str, Any]] = []
    """The engines, as `SelectedEngine.to_dict` returns them."""
    memory: int | None = None
    """Bytes of the machine, if known."""
    problem: str = ""
    """The reason why it cannot judge."""


class RemoteUnit(msgspec.Struct, frozen=True):
    """A unit with its files."""

    unit: Unit
    wanted: WantedEngines
    files: dict[str, bytes]
    """Contents by name in the bundle."""
    source: str
    """URL of the bundle for files that are not here."""


def report_host(data: bytes) -> bytes:
    """Return the report of this worker, in msgpack, after provisioning its engines."""
    return msgspec.msgpack.encode(_report(msgspec.msgpack.decode(data, type=WantedEngines)))


def _report(engine_request: WantedEngines) -> HostReport:
    host, here = socket.gethostname(), this_platform()
    try:
        engines = [engine.to_dict() for engine in _engines(engine_request).values()]
    except Exception as exc:  # a host without engines is left out, with the reason
        return HostReport(host, code_digest(), here, problem=text_of(exc))
    return HostReport(host, code_digest(), here, engines, machine_memory())


def judge_remote(data: bytes) -> bytes:
    """Judge a unit with the engines of this host, and return the results in msgpack.

    Raises WrongHostError if the host has other engines than planned, and OSError if a file is not available.
    """
    remote = msgspec.msgpack.decode(data, type=RemoteUnit)
    try:
        local_engines = _engines(remote.wanted)
        cells = [
            msgspec.structs.replace(cell, engine=_own_engine(cell.engine, local_engines)) for cell in remote.unit.cells
        ]
    except Exception as exc:
        time.sleep(_PAUSE)  # otherwise this idle worker would get all units before it is excluded
        raise WrongHostError(text_of(exc), _this_worker()) from None
    with scratch_folder() as folder:
        for name, content in remote.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name in sorted(remote.unit.files) if remote.source else ():
            if match := _STORED.fullmatch(name):  # any other name is an error of its cell
                _link(_fetch(remote.source, name, match[1]), folder / name)
        answer = judge(pack_unit(msgspec.structs.replace(remote.unit, cells=cells, bundle=str(folder))))
    judged = msgspec.msgpack.decode(answer, type=JudgedUnit)
    return msgspec.msgpack.encode(msgspec.structs.replace(judged, host=_host_name()))


@lru_cache(maxsize=4)
def _engines(engine_request: WantedEngines) -> dict[str, SelectedEngine]:
    """Return the engines of this host by title, from its cache or the index: no library is sent."""
    settings = Settings(
        tract=engine_request.tract,
        cpu=engine_request.cpu,
        runtime=engine_request.runtime,
        paths=engine_request.paths,
        khronos=engine_request.khronos,
        offline=engine_request.offline,
    )
    return {engine.title: engine for engine in select_engines(settings)}


def _this_worker() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _host_name() -> str:
    """Return the worker's name if it has one, from `dask worker --name`, otherwise the machine's."""
    from distributed import get_worker

    try:
        name = get_worker().name
    except ValueError:
        return socket.gethostname()
    return name if isinstance(name, str) and "://" not in name else socket.gethostname()


def _own_engine(planned: dict[str, Any], local_engines: dict[str, SelectedEngine]) -> dict[str, Any]:
    engine = SelectedEngine.from_dict(planned)
    local_engine = local_engines.get(engine.title)
    if local_engine is None or local_engine.platform != engine.platform or digest_of(local_engine) != digest_of(engine):
        raise RuntimeError(f"{engine.title} is another engine on {socket.gethostname()}")
    return local_engine.to_dict()


def digest_of(engine: SelectedEngine) -> str:
    """Return the SHA-256 of an engine's library; empty for the Khronos tools."""
    return (engine.resolved or {}).get("sha256", "")


def _fetch(source: str, name: str, sha256: str) -> Path:
    """Return a file of the bundle from this host's cache, and store it there. Raises OSError if it is damaged."""
    import fsspec

    path = default_cache_dir() / "bundles" / name
    if not path.exists():
        with fsspec.open(f"{source.rstrip('/')}/{name}", "rb") as stream:
            content = stream.read()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise OSError(f"{name} at {source} does not have the SHA-256 of its name")
        write_whole(path, content)
    return path


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@cache
def code_digest() -> str:
    """Return a digest of the code of both packages at the first call."""
    return digest_of_code(("t2n_core", "pytest_t2n"))[:16]
