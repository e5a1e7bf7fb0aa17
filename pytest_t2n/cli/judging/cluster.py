"""The workers of a Dask cluster, which judge units on other machines."""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pytest_t2n.cli.judging.remote import (
    HostReport,
    RemoteUnit,
    WantedEngines,
    WrongHostError,
    code_digest,
    judge_remote,
    report_host,
)
from pytest_t2n.cli.judging.spread import MOST_TRIES
from pytest_t2n.cli.judging.unit import Unit
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.schema import PlatformLine
from t2n_core.engine.processes.memory import MOST
from t2n_core.errors import InputError, T2NError
from t2n_core.extras import importing
from t2n_core.foreign import ForeignFileError, inside, read_file, refuse_strange_files

_MOST_INSIDE = 16 << 20
"""Most bytes of files inside a unit: they pass through the scheduler, which keeps them in memory."""
_MOST_HOSTS = 20
"""How often a unit may be sent to a worker that cannot judge it."""
_SECONDS = 60
"""Seconds to wait for a worker that can judge."""
_PAUSE = 0.5
"""Seconds between two queries of the scheduler for workers."""
_RESUME = "the same command with --resume judges what is left"
_TLS_FILES = {"tls_ca_file": "ca.pem", "tls_client_cert": "cert.pem", "tls_client_key": "key.pem"}


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run on other machines."""
    parser.add_argument("--dask", metavar="ADDRESS", help="judge on a Dask cluster, as tls://host:8786")
    parser.add_argument("--dask-tls", type=Path, metavar="DIR", help="folder with ca.pem, cert.pem and key.pem")
    parser.add_argument("--dask-insecure", action="store_true", help="allow tcp:// to another machine: see the docs")
    parser.add_argument("--dask-resources", type=_resources, default={}, metavar="NAME=N", help="only on such workers")
    parser.add_argument("--source", default="", metavar="URL", help="where workers find large files of the bundle")


class DaskWorkers:
    """The workers of a cluster that share one platform and have the engines."""

    def __init__(
        self, client: Any, engine_request: WantedEngines, options: argparse.Namespace, say: Callable[[str], None]
    ):
        """Query all workers. Raises T2NError if none can judge."""
        self._client, self._wanted, self._bundle, self._source = client, engine_request, options.bundle, options.source
        workers = _workers_with(client, options.dask_resources)
        reports = _reports(client, engine_request, list(workers))
        chosen = _largest_group(reports, say)
        report = reports[chosen[0]]
        self.platform: PlatformLine = report.platform
        self.engines = [SelectedEngine.from_dict(fields) for fields in report.engines]
        self.width = sum(workers[address] for address in chosen)
        on_host = Counter(_host_of(address) for address in chosen)
        sizes = [
            memory // on_host[_host_of(address)]
            for address in chosen
            if (memory := reports[address].memory) is not None
        ]
        self.memory = min([MOST, *sizes])
        """Bytes of an engine's job, such that each host has enough for all of its workers."""
        limits: dict[str, Any] = {"resources": options.dask_resources} if options.dask_resources else {}
        self._bad = set(workers) - set(chosen)
        """Workers that cannot judge."""
        self._executor = client.get_executor(pure=False, **limits)
        say(f"{len(on_host)} hosts, {self.width} workers")

    def executor(self) -> Executor:
        """Return the executor. Raises T2NError if the scheduler is gone."""
        self.check()
        executor: Executor = self._executor
        return executor

    def tries_after(self, error: Exception) -> int:
        """Record an error, and return how often a unit with this error may be tried."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):  # the cluster has already tried it on several workers
            return 1
        if not isinstance(error, WrongHostError):
            return MOST_TRIES
        self._bad.add(error.worker)  # it joined the cluster later, and was not queried
        return _MOST_HOSTS

    def check(self) -> None:
        """Raise T2NError if the scheduler is gone."""
        if self._client.status != "running":
            raise T2NError("the scheduler of the cluster is gone", hint=_RESUME)

    def submit(self, executor: Executor, unit: Unit) -> Future[bytes]:
        """Send a unit to a worker. Raises T2NError if its files are too large to be sent."""
        files = {} if self._source else _file_contents(self._bundle, unit.case, unit.files)
        data = msgspec.msgpack.encode(RemoteUnit(unit, self._wanted, files, self._source))
        return executor.submit(judge_remote, data, **self._places())

    def _places(self) -> dict[str, list[str]]:
        """Return the allowed hosts of units, if not all. Raises T2NError if no worker is left that can judge.

        They are hosts, since a restarted worker has another port; on a host with both kinds, workers are listed.
        """
        if not self._bad:
            return {}
        deadline = time.monotonic() + _SECONDS  # a worker whose process died is restarted by its nanny
        while not (good := [address for address in _workers_of(self._client) if address not in self._bad]):
            if time.monotonic() > deadline:  # an empty list would mean all
                raise T2NError("no worker is left that can judge", hint=_RESUME)
            time.sleep(_PAUSE)
        hosts = {_host_of(address) for address in good}
        return {"workers": good if hosts & {_host_of(address) for address in self._bad} else sorted(hosts)}


@contextmanager
def dask_workers(options: argparse.Namespace, say: Callable[[str], None]) -> Iterator[DaskWorkers]:
    """Yield the workers of the cluster in the options.

    Raises T2NError if there is no cluster, or none of its workers can judge.
    """
    with importing("--dask"):
        from distributed import Client, Security
    _refuse_open_network(options)
    for spec in options.tract:
        if "path:" in spec:
            raise InputError("--dask: a binary of this machine is not on others", hint="name versions of tract")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    security = None
    if options.dask_tls is not None:
        files = {name: str(options.dask_tls / file) for name, file in _TLS_FILES.items()}
        security = Security(require_encryption=True, **files)
    try:
        client = Client(options.dask, security=security, timeout=_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as exc:
        raise T2NError(f"--dask={options.dask}: {exc}") from None
    try:
        try:
            client.wait_for_workers(1, timeout=_SECONDS)
        except TimeoutError:
            raise T2NError(f"--dask={options.dask}: no worker came within {_SECONDS} seconds") from None
        engine_request = WantedEngines(
            tuple(options.tract), options.cpu, options.runtime, options.paths, options.khronos, options.offline
        )
        yield DaskWorkers(client, engine_request, options, say)
    finally:
        client.close(timeout=1)


def _refuse_open_network(options: argparse.Namespace) -> None:
    """Raise InputError for a connection over which anyone can run code on the workers."""
    address = urlsplit(options.dask)
    if address.scheme == "tls" or options.dask_insecure or _is_own(address.hostname or ""):
        return
    raise InputError(
        f"--dask={options.dask}: anyone who can reach the port of such a cluster can run code on its workers",
        hint="use tls:// with --dask-tls, or give --dask-insecure in a trusted network",
    )


def _is_own(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _workers_of(client: Any) -> dict[str, Any]:
    """Return the workers of the cluster by address. Raises T2NError if the scheduler is gone.

    `Client.scheduler_info` is not used: it returns a value that the client's thread replaces every two seconds by one
    without workers.
    """
    try:
        workers: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    except OSError:
        raise T2NError("the scheduler of the cluster is gone", hint=_RESUME) from None
    return workers


def _workers_with(client: Any, resources: Mapping[str, float]) -> dict[str, int]:
    """Return the number of threads of each worker with these resources. Raises T2NError if there is none."""
    thread_counts = {
        address: int(worker["nthreads"])
        for address, worker in _workers_of(client).items()
        if all(worker.get("resources", {}).get(name, 0) >= count for name, count in resources.items())
    }
    if not thread_counts:
        raise T2NError(f"no worker of the cluster has {', '.join(f'{name}={n:g}' for name, n in resources.items())}")
    return thread_counts


def _reports(client: Any, engine_request: WantedEngines, workers: list[str]) -> dict[str, HostReport]:
    """Return each worker's report, even if the worker cannot answer."""
    data = msgspec.msgpack.encode(engine_request)
    answers = client.run(report_host, data, workers=workers, on_error="return")
    return {address: _report_of(address, answer) for address, answer in answers.items()}


def _report_of(address: str, answer: Any) -> HostReport:
    if not isinstance(answer, bytes):
        return HostReport(_host_of(address), "", PlatformLine(""), problem=f"{type(answer).__name__}: {answer}")
    report = msgspec.msgpack.decode(answer, type=HostReport)
    if not report.problem and report.code != code_digest():
        problem = "it runs another version of pytest-t2n, or was started before that was changed"
        return msgspec.structs.replace(report, problem=problem)
    return report


def _largest_group(reports: Mapping[str, HostReport], say: Callable[[str], None]) -> list[str]:
    """Return the workers of the most common platform, with equal engines; print why others are left out.

    Raises T2NError if no worker can judge.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for address, report in reports.items():
        if report.problem:
            say(f"{address} is left out: {report.problem}")
        else:
            engines = str(
                sorted((engine["label"], (engine["resolved"] or {}).get("sha256")) for engine in report.engines)
            )
            groups.setdefault((report.platform.key, engines), []).append(address)
    if not groups:
        raise T2NError("no worker of the cluster can judge", hint="the reasons are printed above")
    first, *others = sorted(groups.values(), key=len, reverse=True)
    for address in (address for group in others for address in group):
        say(f"{address} is left out: it has another platform; give such hosts a resource, and a separate run")
    return first


def _file_contents(bundle: Path, case: str, names: set[str]) -> dict[str, bytes]:
    """Return the contents of files of the bundle. A file that cannot be read is left for the worker to report.

    Raises T2NError if they are too large.
    """
    contents: dict[str, bytes] = {}
    for name in sorted(names):
        try:
            for file, path in _files(bundle, name):
                if path.stat().st_size > _MOST_INSIDE - sum(map(len, contents.values())):
                    raise T2NError(
                        f"the files of {case} have more than {_MOST_INSIDE >> 20} MB, too much for the scheduler",
                        hint="put the bundle where all hosts can read it, and give its --source URL",
                    )
                contents[file] = read_file(path, _MOST_INSIDE)
        except (OSError, ForeignFileError):
            continue
    return contents


def _files(bundle: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yield a file of the bundle, or a folder's files, with their names in the bundle."""
    path = inside(bundle, name)
    if not path.is_dir():
        yield name, path
        return
    refuse_strange_files(path)
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield file.relative_to(bundle).as_posix(), file


def _host_of(address: str) -> str:
    return urlsplit(address).hostname or address


def _resources(text: str) -> dict[str, float]:
    try:
        pairs = (entry.split("=", 1) for entry in text.split(","))
        return {name.strip(): float(count) for name, count in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER, as arm=1") from None
