"""Replaced rows: what an engine refuses, or leaks, is judged by what the model does with the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply, KeptStates
from t2n_core.errors import InputError
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.rows import DEPENDENT, KEPT_ROWS, ROWS, UNKNOWN, replace_rows
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample


def samples() -> list[Sample]:
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((size, 4)).astype(np.float32) for size in (5, 1, 7, 5)]
    return [Sample((array,), (2 * array,), {"B": len(array)}) for array in arrays]


class Refuses:
    """Doubles what it knows, and ends a job at a batch that is none of the samples."""

    name, version, kept_states = "tract", "0.99.1", KeptStates(resets_scans=True, resizes=True)

    def __init__(self) -> None:
        self.jobs: list[int] = []

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        self.jobs.append(len(batches))
        sample_bytes = [sample.inputs[0].tobytes() for sample in samples()]
        outputs = []
        for (array,) in batches:
            if array.tobytes() not in sample_bytes:
                return EngineReply("error", "run", "no such rows", outputs=tuple(outputs), times={"run": 0.1})
            outputs.append((2 * array,))
        return EngineReply("ok", "run", outputs=tuple(outputs), times={"run": 0.1})

    def close(self) -> None:
        pass


def checked(tmp_path: Path, model: Any) -> tuple[Outcome, Refuses]:
    (tmp_path / "model.tar").write_bytes(b"graph")
    engine = Refuses()
    return check_parity(engine, CheckRequest(tmp_path / "model.tar", samples(), ["y"], model=model)), engine


def refuse(inputs: Any) -> Any:
    raise InputError("no such rows")


def test_interior_rows_stay_and_all_others_are_replaced() -> None:
    originals = samples()
    plan = replace_rows(originals)
    assert plan is not None
    assert (plan.sample, plan.kept) == (0, (1,))
    same = [bool(np.array_equal(*rows)) for rows in zip(plan.batches[0][0], originals[0].inputs[0], strict=True)]
    assert same == [False, True, False, False, False]
    assert np.array_equal(plan.batches[0][0][2:], originals[3].inputs[0][2:])


def test_an_empty_batch_lends_no_rows() -> None:
    array = np.ones((5, 4), np.float32)
    originals = [Sample((batch,), (2 * batch,), {"B": len(batch)}) for batch in (array, array[:0])]
    assert replace_rows(originals) is None


def test_rows_that_only_the_engine_refuses_are_a_mismatch(tmp_path: Path) -> None:
    outcome, engine = checked(tmp_path, lambda inputs: (2 * inputs[0],))
    assert engine.jobs == [5, 4], "what came after the rows ran again without them"
    assert outcome.error is not None
    assert outcome.error.error_class == "RowsError"
    assert outcome.error.message == "a row of the batch at B=5 fails when the other rows change: no such rows"


@pytest.mark.parametrize(
    ("model", "words"),
    [(refuse, DEPENDENT), (lambda inputs: (inputs[0] - inputs[0].mean(0),), DEPENDENT), (None, UNKNOWN)],
)
def test_a_model_that_refuses_them_too_or_none_is_a_fact(tmp_path: Path, model: Any, words: str) -> None:
    outcome, _ = checked(tmp_path, model)
    assert outcome.passed
    assert (outcome.facts[ROWS], outcome.facts[KEPT_ROWS]) == (words, 1)
