"""CPU of judging a part of a bundle in this process and its engines, one part of `conformance.lab.measure.records`.

`t2n matrix run` judges in processes that a server forks, and no system adds their times to the command's.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import msgspec

from conformance.lab.machine import cpu_of_children
from pytest_t2n.cli.engine_choice import engines_closed
from pytest_t2n.cli.judging.plan import plan_run
from pytest_t2n.cli.judging.unit import JudgedUnit, Unit, UnitCell, judge, pack_unit
from pytest_t2n.config.engines import select_engines
from pytest_t2n.config.settings import Settings
from pytest_t2n.config.shard import Shard
from pytest_t2n.run.bundle_reader import read_bundles
from t2n_core.engine.processes.memory import memory_limit


def spent() -> tuple[float, float]:
    """Return CPU seconds of this process, and of the children that have ended."""
    return time.process_time(), cpu_of_children()


def measure(bundle: Path, engines: str, parts: int) -> dict[str, float]:
    """Return cells, cases and engines, and the CPU seconds of judging them: our own, and of the engines."""
    selected = select_engines(Settings(tract=(engines,), offline=True))
    plan = plan_run(read_bundles(bundle).checks, selected, shard=Shard(1, parts))
    statuses: dict[str, int] = {}
    before = spent()
    with engines_closed():
        for case, cells in plan.cases.items():
            unit_cells = [UnitCell(item.cell.nodeid, item.cell.engine.to_dict(), list(item.checks)) for item in cells]
            unit = Unit(case, unit_cells, str(bundle), 60.0, memory_limit())
            for cell in msgspec.msgpack.decode(judge(pack_unit(unit)), type=JudgedUnit).cells:
                status = msgspec.json.decode(cell.record)["status"]
                statuses[status] = statuses.get(status, 0) + 1
    after = spent()
    return {
        "engines": len(selected),
        "cases": len(plan.cases),
        "cells": len(plan.cells),
        "own_s": after[0] - before[0],
        "engines_s": after[1] - before[1],
        **statuses,
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
