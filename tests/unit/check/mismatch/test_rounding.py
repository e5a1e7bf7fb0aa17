"""A mismatch is rounding where the engine is about as near to float64 as PyTorch is; one wrong number never is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from t2n_core.check.mismatch.rounding import note_rounding
from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import InputError
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import ROUNDING, ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

RNG = np.random.default_rng(5)
RIGHT = RNG.standard_normal(1000) * 100
NOISE = RNG.standard_normal(1000)
SINGLE = (RIGHT + 1e-2 * NOISE).astype(np.float32)
SIZES = {"T": 7}
MISMATCH = Outcome(
    Status.MISMATCH, Stage.COMPARE, failed_sizes=(SIZES,), error=ErrorInfo.of("compare", "ParityError", "other numbers")
)


def with_one(array, number):
    result = np.array(array)
    result[3] = number
    return result


def noted(found, expected=SINGLE, right=RIGHT, mismatch=MISMATCH, status="ok"):
    sample = Sample((np.ones(3),), (expected,), SIZES)
    passing = Sample((np.ones(3),), (np.zeros(3, np.float32),), {"T": 1})
    engine = SimpleNamespace(run=lambda *_, **__: EngineReply(status, "run", outputs=((found,),)))
    reference = SimpleNamespace(in_float64=lambda samples, keep: [replace(item, original=(right,)) for item in samples])
    request = CheckRequest(Path("m"), [passing, sample], criteria=Judgement.parse("exact"), timeout=9.0)
    return note_rounding(mismatch, engine, request, reference)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.9])
def test_an_engine_as_near_as_pytorch_rounds(share: float) -> None:
    outcome = noted((RIGHT + share * 1e-2 * NOISE).astype(np.float32))
    assert outcome.status is Status.MISMATCH
    assert outcome.error.hint == outcome.facts[ROUNDING]
    assert "off the model in float64, and PyTorch in float32 is 0.029 off" in outcome.facts[ROUNDING]


WRONG = {
    "further off in the mean": (RIGHT + 2.1e-2 * NOISE).astype(np.float32),
    "one number": with_one(RIGHT, RIGHT[3] + 0.2).astype(np.float32),
    "NaN": with_one(RIGHT, np.nan).astype(np.float32),
    "infinite": with_one(RIGHT, np.inf).astype(np.float32),
    "another shape": RIGHT[:-1].astype(np.float32),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_is_wrong_is_no_rounding(name: str) -> None:
    assert noted(WRONG[name]) is MISMATCH


def test_what_is_not_finite_has_to_be_the_same() -> None:
    single, right = with_one(SINGLE, np.inf), with_one(RIGHT, np.inf)
    assert ROUNDING in noted(right.astype(np.float32), single, right).facts
    assert noted(with_one(right, np.nan).astype(np.float32), single, right) is MISMATCH


def test_a_reference_without_errors_of_its_own_explains_nothing() -> None:
    assert noted((SINGLE + np.float32(1e-4)).astype(np.float32), SINGLE, SINGLE.astype(np.float64)) is MISMATCH


def test_integers_do_not_round() -> None:
    assert noted(np.array([1, 2]), np.array([1, 3]), np.array([1, 3])) is MISMATCH


def test_nothing_is_known_without_a_second_answer_or_a_model_in_float64() -> None:
    assert noted(RIGHT.astype(np.float32), status="timeout") is MISMATCH

    def refuse(*_: object, **__: object) -> None:
        raise InputError("it does not run in float64")

    sample = Sample((np.ones(3),), (SINGLE,), SIZES)
    engine = SimpleNamespace(run=lambda *_, **__: EngineReply("ok", "run", outputs=((SINGLE,),)))
    reference = SimpleNamespace(in_float64=refuse)
    assert note_rounding(MISMATCH, engine, CheckRequest(Path("m"), [sample]), reference) is MISMATCH
