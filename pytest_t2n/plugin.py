"""pytest's hooks, and nothing else: what they do is in the other modules of this package.

Nothing here imports torch or numpy, neither at start nor while collecting; and each hook loads only what it needs: they
run in every session of a user who has the plugin installed.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect import names as t2n
from pytest_t2n.config.options import add_options

if TYPE_CHECKING:
    from pytest_t2n.config.engines import SelectedEngine


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", t2n.MARKER_HELP)
    config.stash[t2n.ENGINES] = []
    if config.getoption("help", False):
        return  # pytest configures itself to print that, and no session follows
    from pytest_t2n.config.settings import read_settings

    config.stash[t2n.SETTINGS] = read_settings(config)
    config.stash[t2n.TOLD] = {}
    if t2n.is_worker(config):
        from pytest_t2n.control.controller import start_worker

        start_worker(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    controller = config.stash.get(t2n.CONTROLLER, None)
    if controller is not None:
        controller.close()
    if t2n.KEPT in config.stash:
        config.stash[t2n.KEPT].close()
    if "t2n_core.engine.pool" in sys.modules:
        sys.modules["t2n_core.engine.pool"].close_all()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    settings = session.config.stash[t2n.SETTINGS]
    if not t2n.is_worker(session.config) and (settings.selects_engines or settings.report is not None):
        from pytest_t2n.control.controller import start

        start(session.config)


def pytest_report_header(config: pytest.Config) -> str | None:
    engines = config.stash[t2n.ENGINES]
    if not engines:
        return None
    from pytest_t2n.config.engines import cache_folder, header_line

    return header_line(engines, cache_folder(config.stash[t2n.SETTINGS]))


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    # Behind all others: the engine is the last part of an id, and the versions of one case stay together.
    result = yield
    if t2n.is_case(metafunc.definition, metafunc.fixturenames):
        from pytest_t2n.collect.cells import parametrize_engines

        parametrize_engines(metafunc, metafunc.config.stash[t2n.ENGINES])
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    cases = [item for item in items if t2n.is_case(item, getattr(item, "fixturenames", ()))]
    if cases:
        from pytest_t2n.collect.cells import label_items

        label_items(cases, config.stash[t2n.ENGINES])
    yield
    if config.stash[t2n.ENGINES]:
        from pytest_t2n.control.controller import select

        # Behind -k, -m and the plugins that sort: the shards are parts of what the user selected.
        select(config, items)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    if items:
        items[0].config.stash[t2n.DESELECTED] = True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    if t2n.SELECTION not in config.stash:
        return
    if t2n.is_worker(config):
        from pytest_t2n.control.controller import write_plan

        write_plan(config)
    elif t2n.CONTROLLER in config.stash and not config.getoption("collectonly", False):
        config.stash[t2n.CONTROLLER].take_plan(config.stash[t2n.SELECTION])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if t2n.BAD_MARK in item.stash:
        pytest.fail(f"@pytest.mark.{t2n.MARKER}: {item.stash[t2n.BAD_MARK]}", pytrace=False)
    cell = item.stash.get(t2n.CELL, None)
    if cell is not None:
        from pytest_t2n.run.cell_run import CellRun, ExportCache

        stash = item.config.stash
        if t2n.CACHE not in stash:
            stash[t2n.CACHE] = ExportCache()
        item.stash[t2n.RUN] = CellRun(item, cell, stash[t2n.SETTINGS], stash[t2n.CACHE])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    run = pyfuncitem.stash.get(t2n.RUN, None)
    if run is None or t2n.FIXTURE in pyfuncitem.fixturenames:
        return None
    from pytest_t2n.run.cell_run import arguments_of

    run.check_returned(pyfuncitem.obj, arguments_of(pyfuncitem))
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.stash[t2n.ENGINES]:
        from pytest_t2n.records.from_report import attach_record, make_portable

        config = item.config
        text = attach_record(
            report,
            item.stash.get(t2n.CELL, None),
            item.stash.get(t2n.RUN, None),
            call,
            config.stash[t2n.EXPECTATIONS],
            config.rootpath,
            accept=config.stash[t2n.SETTINGS].accept,
            told=config.stash[t2n.TOLD],
        )
        if t2n.is_worker(config):
            from pytest_t2n.control.controller import keep_record

            keep_record(config, text)
            make_portable(report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    run = item.stash.get(t2n.RUN, None)
    if run is not None:
        # Items live as long as the session; what a cell holds must not.
        run.close()
        del item.stash[t2n.RUN]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if t2n.CACHE in config.stash:
        config.stash[t2n.CACHE].close()
    controller = config.stash.get(t2n.CONTROLLER, None)
    if controller is not None and not config.getoption("collectonly", False):
        controller.finish(session)
        if session.exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            from pytest_t2n.control.summary import write_summary

            # pytest prints no summaries then, and what is missing must be named all the same.
            write_summary(config.pluginmanager.getplugin("terminalreporter"), controller.ledger)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    controller = config.stash.get(t2n.CONTROLLER, None)
    if controller is not None or terminalreporter.stats.get("skipped"):
        from pytest_t2n.control.summary import write_summary

        write_summary(terminalreporter, controller.ledger if controller is not None else None)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    controller = node.config.stash.get(t2n.CONTROLLER, None)
    if controller is not None:
        node.workerinput[t2n.WORKER_INPUT] = controller.worker_input()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    controller = node.config.stash.get(t2n.CONTROLLER, None)
    if controller is not None:
        controller.take_collection(node.workerinput["workerid"], ids)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    engines = config.stash[t2n.ENGINES]
    if not engines or config.getoption("dist") != "load":
        return None
    from pytest_t2n.collect.scheduling import CaseScheduling

    return CaseScheduling(config, log, [engine.id for engine in engines])


@pytest.fixture
def t2n_engine(request: pytest.FixtureRequest) -> SelectedEngine | None:
    """The engine of this test; None in a test that has none."""
    return getattr(request, "param", None)


@pytest.fixture
def nnef_rewriters() -> list[Any]:
    """Rewriters for the exports of a test: override it in a conftest.py for a whole folder, or append in a test."""
    return []


@pytest.fixture
def nnef_export(request: pytest.FixtureRequest, t2n_engine: SelectedEngine | None) -> Any:
    """`nnef_export(model, args, *, kwargs=None, **options)`: export a model for the engine of this test.

    Gives an ExportResult; `assert_parity("close")` runs it in the engine and compares. Options are those of the marker
    `nnef_export`, except target and versions.
    """
    run = request.node.stash.get(t2n.RUN, None)
    if run is None or t2n_engine is None:
        pytest.skip("t2n: no engine selected; select with --t2n-tract=0.21,0.23 or --t2n-khronos")
    return run.export
