"""Scheduling over xdist's workers: the engines of one case run in one worker, so that they share its export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.nodeids import case_id

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_ENOUGH = 2
"""Number of pending tests with which a worker does not wait for the controller."""


class CaseScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Scheduler whose unit of work is a case with all its engines, or any other test. Node ids stay unchanged."""

    def __init__(self, config: pytest.Config, log: Any, engines: Sequence[SelectedEngine]) -> None:
        """`engines` may gain the engines of the user's targets until the tests are collected."""
        super().__init__(config, log)
        self._engines = engines
        self._engine_ids: list[str] = []
        self._positions: dict[str, int] = {}
        """Index of each test in the collection, equal in all workers."""

    def _split_scope(self, nodeid: str) -> str:
        if len(self._engine_ids) != len(self._engines):
            # Longest first: `tract-0.21.1` is not the end of any other id, but a binary's label could be.
            self._engine_ids = sorted((engine.id for engine in self._engines), key=len, reverse=True)
        for engine_id in self._engine_ids:
            if nodeid.endswith(f"{engine_id}]"):
                return case_id(nodeid, engine_id)
        return nodeid

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Do as the base class, and remove finished units, since it iterates over all of them each time."""
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        unit = self.assigned_work[node][scope]
        unit[nodeid] = True
        if all(unit.values()):
            del self.assigned_work[node][scope]
        self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Keep a worker supplied.

        A worker starts a test once it knows the next one, or that there is none. The base class gives a worker that
        replaces a dead one a single unit; if that is a single test, both wait forever.
        """
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) <= _ENOUGH:
            if not self._assign_work_unit(node):
                return
        if not self.workqueue and self._pending_of(self.assigned_work[node]) < _ENOUGH:
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> bool:
        """Return True if the worker could be reached; if not, the unit stays, since its death will be reported."""
        if not self._positions:
            self._positions = {nodeid: index for index, nodeid in enumerate(self.collection or ())}
        scope, unit = self.workqueue.popitem(last=False)
        try:
            node.send_runtest_some([self._positions[nodeid] for nodeid, done in unit.items() if not done])
        except OSError:
            self.workqueue[scope] = unit
            self.workqueue.move_to_end(scope, last=False)
            return False
        self.assigned_work[node][scope] = unit
        return True

    def remove_node(self, node: WorkerController) -> str | None:
        """Do as the base class, and count the test that killed the worker as done.

        The base class assigns it again with the rest of its unit, and it kills the next worker.
        """
        crashed: str | None = None
        for scope, unit in self.assigned_work.pop(node).items():
            for nodeid, done in unit.items():
                if not done and crashed is None:
                    crashed = nodeid
                    unit[nodeid] = True
            if not all(unit.values()):
                self.workqueue[scope] = unit
        if crashed is not None:
            for other in self.assigned_work:
                self._reschedule(other)
        return crashed
