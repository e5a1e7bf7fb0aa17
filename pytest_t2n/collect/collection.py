"""The role object for collection: it turns marked tests into cells and selects this session's part of them."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_t2n.collect.names import ENGINE_PARAM, is_case, marker_of

if TYPE_CHECKING:
    from pytest_t2n.collect.case_arguments import CaseArguments
    from pytest_t2n.collect.selection import Selection
    from pytest_t2n.config.shard import Shard
    from pytest_t2n.records.cell import Cell, SelectedEngine


class CaseCollector:
    """Role object with one instance per process. It imports nothing in a session without marked tests."""

    def __init__(
        self,
        engines: Sequence[SelectedEngine] = (),
        shard: Shard | None = None,
        durations: Mapping[str, float] | None = None,
        done: Collection[str] = (),
        *,
        require: bool = False,
    ) -> None:
        """`durations`, in seconds by case, balance shards; `done` are node ids that an interrupted session finished.

        With `require` a case that no engine fits fails; otherwise it is skipped.
        """
        self.engines = engines
        self.durations = durations or {}
        self.selection: Selection | None = None
        """The selection; None before collection, and in a session without engines."""
        self._shard, self._done, self._require = shard, frozenset(done), require
        self._cells: dict[pytest.Item, Cell] = {}
        self._unfit: dict[pytest.Item, str] = {}
        self._targets: dict[pytest.Item, tuple[str, ...]] = {}
        """Targets of the cells whose markers name several."""
        self._own: dict[str, type] = {}
        """Classes of the user's own targets, by name."""
        self._labelled: set[pytest.Item] = set()
        """The cases among the items of the session."""
        self._deselected = False
        self._arguments: CaseArguments | None = None

    def cell_of(self, item: pytest.Item) -> Cell | None:
        """Return the cell of an item; None for a test without an engine."""
        return self._cells.get(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Collect cases that arguments name without an engine: `test_x.py::test_y[a]`."""
        config = session.config
        arguments = config.args
        if self.engines and not config.option.pyargs and any("[" in argument for argument in arguments):
            from pytest_t2n.collect.case_arguments import CaseArguments

            self._arguments = CaseArguments(arguments, config.invocation_params.dir)
            config.args = self._arguments.collected
        try:
            return (yield)
        finally:
            config.args = arguments

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Collect no garbage while a test module is imported, which would take a sixth of the import of PyTorch."""
        if not self.engines or not isinstance(collector, pytest.Module):
            return (yield)
        from t2n_core.extras import loading_modules

        with loading_modules():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> Generator[None, object, object]:
        """Add the engine after all other parameters: it ends the id, and the versions of one case stay together."""
        result = yield
        if is_case(metafunc.definition, metafunc.fixturenames):
            from pytest_t2n.collect.cells import parametrize_engines

            parametrize_engines(metafunc, self.engines, self._own)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Find the cells first; after `-k`, `-m` and plugins that sort, select this session's part of the rest."""
        self._label(items)
        if self._arguments is not None:
            self._arguments.keep_named(items, self._cells)
        yield
        self._label(items)  # tests that were marked meanwhile
        if self.engines:
            self._select(config, items)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Record that the user, or a plugin, left tests out."""
        self._deselected = self._deselected or bool(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test with a wrong mark, or without a required engine."""
        if item in self._unfit:
            pytest.fail(self._unfit[item], pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a test that was marked while it ran: its result is not checked."""
        yield
        if self.engines and item not in self._labelled and _is_case(item):
            from pytest_t2n.collect.cells import why_unproven

            if reason := why_unproven(item, self.engines):
                pytest.fail(reason, pytrace=False)

    def _label(self, items: Sequence[pytest.Item]) -> None:
        """Find the cells among items, and record why other cases have no engine."""
        cases = [item for item in items if item not in self._labelled and _is_case(item)]
        if not cases:
            return
        from pytest_t2n.collect.cells import cells_of_items, why_no_engine, why_unproven
        from pytest_t2n.collect.markers import MarkerError, marks_of, read_marks

        self._labelled.update(cases)
        self._cells |= cells_of_items(cases)
        targets_of: dict[tuple[int, ...], tuple[str, ...]] = {}
        for item in cases:
            try:
                if reason := why_unproven(item, self.engines):
                    self._unfit[item] = reason
                elif item in self._cells:
                    marks = marks_of(item)
                    key = tuple(map(id, marks))  # most tests of a parametrized function share their marks
                    if key not in targets_of:
                        targets_of[key] = read_marks(marks).targets
                    if len(targets_of[key]) > 1:
                        self._targets[item] = targets_of[key]
                elif self._require:
                    self._unfit[item] = f"{why_no_engine(item, self.engines)} (--t2n-require)"
                else:
                    item.add_marker(pytest.mark.skip(reason=why_no_engine(item, self.engines)))
            except MarkerError as exc:  # in a parameter set's mark; the function's marks were already read
                self._unfit[item] = f"@pytest.mark.{marker_of(item)}: {exc}"

    def _select(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        from pytest_t2n.collect.cells import require_own_names
        from pytest_t2n.collect.selection import Selection, in_shard, is_narrowed, unmade_cells
        from pytest_t2n.records.nodeids import suite_names

        cells = {item: cell for item in items if (cell := self.cell_of(item)) is not None}
        require_own_names(cells)
        suites = {name for item in items for name in suite_names(item.nodeid)}
        partial = self._deselected or bool(self._done) or is_narrowed(config) or self._shard is not None
        own_items, cut = set(items), ""
        if self._shard is not None:
            own_items, cut = in_shard(items, cells, self._shard, self.durations)
        elsewhere = 0 if own_items else len(items)
        unmade = unmade_cells(
            (cell, self._targets[item]) for item, cell in cells.items() if item in own_items and item in self._targets
        )
        own_items -= {item for item, cell in cells.items() if cell.nodeid in self._done}
        others = [item for item in items if item not in own_items]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if item in own_items]
        self._cells = {item: cells[item] for item in items if item in cells}
        self.selection = Selection(
            list(self._cells.values()), list(cells.values()), suites, partial, cut, elsewhere, unmade
        )


def _is_case(item: pytest.Item) -> bool:
    """Return whether an item has the marker or the fixture, or has an engine."""
    parameters = getattr(getattr(item, "callspec", None), "params", ())
    return ENGINE_PARAM in parameters or is_case(item, getattr(item, "fixturenames", ()))
