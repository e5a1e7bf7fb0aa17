"""Differences that rounded inputs explain, and others beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply
from t2n_core.parity.definitions import check_by_definitions, samples_by_definitions
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.stage import Status

GRAPH = """version 1.0;

graph net(a, b) -> (y, z)
{
    a = external(shape = [3, 4]);
    b = external(shape = [3, 4]);
    y = sub(a, b);
    z = mul(a, 2.0);
}
"""


class OffEngine:
    """Returns the right outputs, off by a number in one element."""

    name, version, kept_states = "fake", "0", None

    def __init__(self, expected: Any, output: int, by: float) -> None:
        self.outputs = [array.copy() for array in expected]
        self.outputs[output][1, 2] += by

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        return EngineReply("ok", "run", outputs=tuple(tuple(self.outputs) for _ in batches))


class RememberingEngine(OffEngine):
    """Is off as by rounding, and by more for all inputs after the first ones of a job."""

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        later = [self.outputs[0] + 3, self.outputs[1]]
        return EngineReply("ok", "run", outputs=(tuple(self.outputs), *(tuple(later) for _ in batches[1:])))


class SilentEngine(OffEngine):
    """Returns fewer outputs than the graph has."""

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        return EngineReply("ok", "run", outputs=tuple((self.outputs[0],) for _ in batches))


@pytest.mark.parametrize(
    ("output", "by", "status"), [(0, 0.05, Status.WEAK), (0, 3.0, Status.MISMATCH), (1, 5e3, Status.MISMATCH)]
)
def test_a_difference_of_numbers_that_cancel(output: int, by: float, status: Status, tmp_path: Path) -> None:
    assert checked(OffEngine, tmp_path, output, by) is status


@pytest.mark.parametrize("engine", [RememberingEngine, SilentEngine])
def test_no_rounding_explains_what_else_an_engine_does(engine: type[OffEngine], tmp_path: Path) -> None:
    assert checked(engine, tmp_path, 0, 0.05, times=2) is Status.MISMATCH


def checked(kind: type[OffEngine], folder: Path, output: int, by: float, times: int = 1) -> Status:
    (folder / "graph.nnef").write_text(GRAPH)
    a = np.full((3, 4), 1e6, np.float32) + np.arange(12, dtype=np.float32).reshape(3, 4)
    a[0, 0] = 0.5
    samples = samples_by_definitions(folder, [(a, a[::-1].copy())] * times)
    engine: Any = kind(samples[0].expected, output, by)
    return check_by_definitions(engine, CheckRequest(folder, samples, ["y", "z"])).status
