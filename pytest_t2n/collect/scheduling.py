"""Spread cases over xdist's workers so that the engines of one case share one export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from pytest_t2n.collect.cells import case_id

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_ENOUGH = 2
"""Tests a worker has to know of so that it does not wait for the controller."""


class CaseScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """One unit of work per case: all its engines; any other test is a unit of its own. Node ids stay as they are."""

    def __init__(self, config: pytest.Config, log: Any, engine_ids: Sequence[str]) -> None:
        super().__init__(config, log)
        # The longest first: `tract-0.21.1` is the end of no other id, but a binary's label could be.
        self._engine_ids = sorted(engine_ids, key=len, reverse=True)
        self._positions: dict[str, int] = {}
        """Where each test is in the collection, which all workers share."""

    def _split_scope(self, nodeid: str) -> str:
        for engine_id in self._engine_ids:
            if nodeid.endswith(f"{engine_id}]"):
                return case_id(nodeid, engine_id)
        return nodeid

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """As the base class, except that finished units are forgotten: it counts through all of them each time."""
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        unit = self.assigned_work[node][scope]
        unit[nodeid] = True
        if all(unit.values()):
            del self.assigned_work[node][scope]
        self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Keep a worker supplied.

        A worker starts a test when it knows the next one, or that there is none. The base class gives a worker that
        replaces a dead one a single unit; if that is a single test, both wait for ever.
        """
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) <= _ENOUGH:
            if not self._assign_work_unit(node):
                return
        if not self.workqueue and self._pending_of(self.assigned_work[node]) < _ENOUGH:
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> bool:
        """Whether the worker could be reached; if not, the unit stays: word of the worker's death is on its way."""
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
        """As the base class, except that the test that killed the worker is done.

        The base class hands it out again with the rest of its unit, where it kills the next worker.
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


__all__ = ["CaseScheduling"]
