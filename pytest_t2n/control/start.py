"""The start of a session: provision engines, and register the role objects as plugins of pytest."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock

import pytest

from pytest_t2n.collect.collection import CaseCollector
from pytest_t2n.collect.names import COLLECTOR, CONTROLLER, RECORDER, RETURNED, RUNNER, WORKER
from pytest_t2n.config.engines import cache_folder, select_engines
from pytest_t2n.config.secrets import hidden_digest, without_secrets
from pytest_t2n.config.settings import Settings
from pytest_t2n.config.transforms import require_transforms
from pytest_t2n.control.controller import Controller
from pytest_t2n.control.hooks import HookCalls, change_engines
from pytest_t2n.control.ledger import Ledger
from pytest_t2n.control.reads import Reads
from pytest_t2n.control.repeated_failures import RepeatedFailures
from pytest_t2n.control.sources import source_digest
from pytest_t2n.control.worker import Worker, WorkerInput
from pytest_t2n.expect.entries import ExpectationError, Expectations, read_expectations
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.schema import RecordError
from t2n_core.errors import T2NError


def start_controller(config: pytest.Config, settings: Settings) -> None:
    """Select the engines, open the ledger, and register the roles of the process that sees all reports.

    A session that runs no test provisions nothing and writes nothing.

    Raises:
        pytest.UsageError: an engine cannot be provisioned, a directory cannot be written, an expectation is wrong, or
            the durations of shards cannot be read.
    """
    engines = select_engines(settings, _progress(config)) if settings.selects_engines else []
    if engines:
        change_engines(config, engines)
        engines = _with_exporters(config, settings, engines)
        require_transforms(settings.transforms, engines)
    expectations = _expectations(config, settings, engines)
    durations = _durations(settings)
    bundle = settings.bundle if not settings.only_collects else None
    if bundle is not None:
        from pytest_t2n.run.bundles import check_bundle_folder

        check_bundle_folder(bundle)
    # Relative to the project: a published report must not show paths of one machine.
    typed = [str(argument) for argument in config.invocation_params.args]
    arguments = [argument.replace(f"{config.rootpath}{os.sep}", "") for argument in without_secrets(typed)]
    hooks = HookCalls()
    tell = partial(hooks.call, config.hook.pytest_t2n_record, config=config)
    source = source_digest(config.rootpath) if settings.report is not None and not settings.only_collects else ""
    repeats = config.getoption("dist", "no") == "each"
    ledger = Ledger(
        settings,
        engines,
        arguments,
        tell,
        root=config.rootpath,
        source=source,
        options=hidden_digest(typed),
        repeats=repeats,
    )
    if not settings.only_collects:
        ledger.open()
    if bundle is not None:
        _start_bundle(bundle, frozenset(ledger.resumed))
    collector = CaseCollector(engines, settings.shard, durations, ledger.resumed, require=settings.require)
    config.pluginmanager.register(collector, COLLECTOR)
    if engines and not settings.only_collects:
        _register_running(config, settings, collector, expectations)
    controller = Controller(config, settings, engines, expectations, ledger, collector, hooks)
    config.pluginmanager.register(controller, CONTROLLER)
    config.pluginmanager.register(RepeatedFailures())


def _with_exporters(
    config: pytest.Config, settings: Settings, engines: Sequence[SelectedEngine]
) -> list[SelectedEngine]:
    if not settings.exporter:
        return list(engines)
    from pytest_t2n.config.exporters import engines_by_exporter, registered_exporters

    try:
        return engines_by_exporter(settings.exporter, engines, settings, registered_exporters(config))
    except T2NError as exc:
        raise pytest.UsageError(f"--t2n-exporter: {exc}") from None


def start_worker(config: pytest.Config, settings: Settings) -> None:
    """Register the roles of a worker of xdist, with the engines that its controller resolved."""
    worker_input = WorkerInput.of(config)
    collector = CaseCollector(
        worker_input.engines, settings.shard, worker_input.durations, worker_input.done, require=settings.require
    )
    config.pluginmanager.register(collector, COLLECTOR)
    if worker_input.folder is not None and worker_input.engines:
        worker = Worker(config.workerinput["workerid"], worker_input.folder, collector)  # type: ignore[attr-defined]
        config.pluginmanager.register(worker, WORKER)
        _register_running(config, settings, collector, worker_input.expectations, worker)


def _register_running(
    config: pytest.Config,
    settings: Settings,
    collector: CaseCollector,
    expectations: Expectations,
    worker: Worker | None = None,
) -> None:
    from pytest_t2n.control.recorder import Recorder
    from pytest_t2n.run.runner import CellRunner, ReturnedModels
    from t2n_core.engine.processes.memory import limit_memory, share_of_memory

    # At its end Python would free PyTorch object by object, a second of CPU time; frozen objects go with the process.
    atexit.unregister(gc.freeze)  # a session may run within another
    atexit.register(gc.freeze)
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    workers = int(count) if count.isdecimal() else 1  # anyone may set the variable
    limit_memory(share_of_memory(workers) if settings.memory is None else settings.memory)
    runner = CellRunner(settings, collector)
    config.pluginmanager.register(runner, RUNNER)
    config.pluginmanager.register(ReturnedModels(runner), RETURNED)
    recorder = Recorder(
        collector,
        runner,
        expectations,
        config.rootpath,
        accept=settings.accept,
        strict=settings.strict,
        worker=worker,
        reads=_reads(config, settings),
    )
    config.pluginmanager.register(recorder, RECORDER)


def _reads(config: pytest.Config, settings: Settings) -> Reads | None:
    """Return what notes the files that this process reads from now on, if there is a report to be resumed."""
    if settings.report is None:
        return None
    folder_names = [".git", ".hypothesis", ".benchmarks"]
    if config.pluginmanager.has_plugin("cacheprovider"):
        folder_names.append(str(config.getini("cache_dir")))
    folders = [config.rootpath / name for name in folder_names]
    others = [settings.report, settings.bundle, settings.bundle_failures, settings.profile, cache_folder(settings)]
    reads = Reads(config.rootpath, [*folders, *(path.absolute() for path in others if path is not None)])
    reads.start()
    if config.inipath is not None:
        reads.opened(str(config.inipath), os.O_RDONLY)
    return reads


def _start_bundle(directory: Path, resumed: Container[str]) -> None:
    """Start the bundle; the checks of resumed cells stay. Raises pytest.UsageError."""
    from pytest_t2n.run.bundle_reader import read_bundle
    from pytest_t2n.run.bundles import MANIFEST, start_bundle

    try:
        earlier = read_bundle(directory).checks if (directory / MANIFEST).exists() else ()
    except RecordError as exc:
        raise pytest.UsageError(f"--t2n-bundle: {exc}") from None
    start_bundle(directory, [check for check in earlier if check.nodeid in resumed])


def _expectations(config: pytest.Config, settings: Settings, engines: Sequence[SelectedEngine]) -> Expectations:
    if not engines or not settings.expect:
        return Expectations()
    try:
        return read_expectations(settings.expect, config.rootpath, missing_ok=settings.accept)
    except ExpectationError as exc:
        raise pytest.UsageError(f"--t2n-expect: {exc}") from None


def _durations(settings: Settings) -> Mapping[str, float]:
    """Return the seconds of each case, read before the session's own report may replace the file."""
    if settings.durations is None:
        return {}
    from pytest_t2n.records.file import read_durations

    try:
        durations = read_durations(settings.durations)
    except (OSError, RecordError) as exc:
        raise pytest.UsageError(f"--t2n-durations: {exc}") from None
    if not durations:
        raise pytest.UsageError(f"--t2n-durations: no cell in {settings.durations} has times")
    return durations


def _progress(config: pytest.Config) -> Callable[[str, str], None]:
    """Return a function that reports downloads, since the first session of a machine would otherwise seem to hang."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    lock = Lock()  # engines are fetched by several threads, and a line is two writes

    def say(version: str, event: str) -> None:
        if reporter is not None and event != "ready":
            with lock:
                reporter.write_line(f"t2n: {event} tract {version}")

    return say
