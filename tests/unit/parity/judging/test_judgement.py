"""Numbers of the user's own beside levels, by output, and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import InputError
from t2n_core.parity.check import check_parity
from t2n_core.parity.comparison import compare
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from tests.releases import NEWEST


class Answers:
    """An engine that answers with the given outputs."""

    name, version, kept_states = "tract", NEWEST, None

    def __init__(self, outputs: Sequence[tuple[Any, ...]]) -> None:
        self._outputs = tuple(outputs)

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> EngineReply:
        return EngineReply("ok", "run", outputs=self._outputs)

    def close(self) -> None: ...


SAMPLES = [Sample((x,), (x.copy(), x[:2].copy()), {"T": 3}) for x in np.eye(3, dtype=np.float32)]


def checked(tmp_path: Path, shift: float, samples: Sequence[Sample] = SAMPLES, **words: Any) -> Outcome:
    archive = tmp_path / "m.tar"
    archive.write_bytes(b"archive")
    engine = Answers([tuple(array + np.float32(shift) for array in sample.expected) for sample in samples])
    return check_parity(engine, CheckRequest(archive, samples, ["y", "z"], Judgement.of(**words)))


@pytest.mark.parametrize(
    ("expected", "actual", "words", "passes"),
    [
        ([1.0, 2.0], [1.01, 2.0], {"atol": 0.02}, True),
        ([1.0, 2.0], [1.03, 2.0], {"atol": 0.02}, False),
        ([100.0], [101.0], {"rtol": 0.01}, True),
        ([100.0], [101.02], {"rtol": 0.01}, False),
        ([100.0], [101.02], {"rtol": 0.01, "atol": 0.02}, True),
        ([1.0], [1.00000012], {"atol": 0.0}, False),
        ([1.0], [1.0], {"atol": 0.0}, True),
        ([1.0], [1.3], {"atol": {"other": 0.5}}, False),
        ([1.0], [1.3], {"atol": {"": 0.5}}, True),
        ([1.0], [1.3], {"atol": {"": 0.5}, "tolerance": {"y": "close"}}, False),
        ([1.0], [np.nan], {"atol": 1e9}, False),
        ([1.0], [np.inf], {"atol": 1e9}, False),
        ([np.inf], [np.inf], {"atol": 0.0}, True),
        ([1.0, 5.0], [1.0001, 5.0], {"tolerance": {"y": "close"}}, False),
        ([1.0, 5.0], [1.0001, 5.0], {"tolerance": {"x": "close"}}, True),
    ],
)
def test_an_output_by_numbers(expected: Any, actual: Any, words: dict[str, Any], passes: bool) -> None:
    arrays = np.array(expected, np.float32), np.array(actual, np.float32)
    assert compare(*arrays, name="y", criteria=Judgement.of(**words)).passed is passes


def test_integers_by_numbers() -> None:
    expected, actual = np.array([1, 200], np.int64), np.array([2, 203], np.int64)
    assert not compare(expected, actual, criteria=Judgement.of(atol=2)).passed
    assert compare(expected, actual, criteria=Judgement.of(atol=3)).passed
    comparison = compare(expected, actual, criteria=Judgement.of(atol=1))
    assert comparison.outside == 0.5
    assert comparison.level is None


def test_the_outcome_says_what_was_required(tmp_path: Path) -> None:
    outcome = checked(tmp_path, 0.3, atol={"y": 0.2}, tolerance={"z": "ultra"})
    assert outcome.status is Status.MISMATCH
    assert "2 of 2 outputs differ from PyTorch beyond `atol=0.2 rtol=0`, `ultra`: y, z" in outcome.describe()
    assert checked(tmp_path, 0.15, atol=0.2).status is Status.PASS
    level = checked(tmp_path, 0.15, atol=0.2).outputs[0]
    assert (level.level, level.limit, level.outside) == ("ultra", "atol=0.2 rtol=0", 0.0)


def test_numbers_so_wide_that_a_constant_passes_are_weak(tmp_path: Path) -> None:
    outcome = checked(tmp_path, 0.1, atol=0.6)
    assert outcome.status is Status.WEAK
    assert "within `atol=0.6 rtol=0`" in outcome.describe()


def largest(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    return max(float(abs(a - b).max()) for a, b in zip(expected, actual, strict=True))


def test_a_metric_alone_decides(tmp_path: Path) -> None:
    outcome = checked(tmp_path, 0.3, metric=largest, bound=0.4)
    assert outcome.status is Status.PASS
    assert (outcome.level, outcome.required) == (None, None)
    (metric,) = outcome.metrics
    assert (metric.name, metric.required, round(metric.value, 6), metric.sizes) == ("largest", "<= 0.4", 0.3, {"T": 3})
    wrong = checked(tmp_path, 0.5, metric=largest, bound=0.4)
    assert wrong.status is Status.MISMATCH
    assert "metric largest: 0.5, required <= 0.4, worst at T=3" in wrong.describe()
    assert not wrong.failed_sizes, "the worst sample is named, not all that are beyond the bound"


@pytest.mark.parametrize("bound", [np.inf, ">= -inf"])
def test_the_level_decides_where_no_metric_does(tmp_path: Path, bound: Any) -> None:
    outcome = checked(tmp_path, 0.3, metric=largest, bound=bound)
    assert outcome.status is Status.MISMATCH
    assert "beyond `approximate`" in outcome.describe()
    assert checked(tmp_path, 0.0, metric=largest, bound=bound).status is Status.PASS


def test_a_level_beside_a_metric_must_hold_too(tmp_path: Path) -> None:
    outcome = checked(tmp_path, 0.3, tolerance="close", metric=largest, bound=0.4)
    assert outcome.status is Status.MISMATCH
    assert "beyond `close`" in outcome.describe()
    assert "metric largest: 0.3" in outcome.describe()


def agreement(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    return float(np.mean(expected[0].argmax() == actual[0].argmax()))


def test_more_is_better(tmp_path: Path) -> None:
    assert checked(tmp_path, 0.3, metric={"top1": agreement}, bound={"top1": ">= 0.99"}).status is Status.PASS
    assert checked(tmp_path, np.nan, metric=agreement, bound=">= 0.99").status is Status.MISMATCH


def test_a_metric_that_accepts_everything_is_weak(tmp_path: Path) -> None:
    outcome = checked(tmp_path, 5.0, metric=lambda expected, actual: 0, bound=0.01)
    assert outcome.status is Status.WEAK
    assert "metric metric accepts the outputs of other inputs too" in outcome.describe()
    alone = checked(tmp_path, 0.0, SAMPLES[:1], metric=largest, bound=0.01)
    assert alone.status is Status.WEAK
    assert "metric largest was measured for one set of inputs only" in alone.describe()


def test_what_no_metric_mends(tmp_path: Path) -> None:
    outcome = checked(tmp_path, np.nan, metric=lambda expected, actual: 0.0, bound=0.5)
    assert outcome.status is Status.MISMATCH
    assert "NaN where the other side has none" in outcome.describe()
    assert outcome.metrics == ()


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda a, b: "good", "metric `metric` returned str"), (lambda a, b: [][1], "list index out of range")],
)
def test_a_metric_that_fails(function: Any, message: str, tmp_path: Path) -> None:
    outcome = checked(tmp_path, 0.0, metric=function, bound=1)
    assert outcome.status is Status.ERROR
    assert message in outcome.describe()


def test_a_metric_compares_with_the_models_own_weights_by_default() -> None:
    judgement = Judgement.of(metric=largest, bound=1)
    assert judgement.reference == "original"
    assert Judgement.of(judgement, reference="stored").reference == "stored"
    assert Judgement.of(Judgement.of(metric=largest, bound=1, reference="stored"), atol=1).reference == "stored"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"atol": -1}, "atol=-1 is neither a number from 0 on"),
        ({"rtol": "1e-3"}, "rtol='1e-3' is neither a number"),
        ({"atol": {"y": float("inf")}}, "is neither a number from 0 on"),
        ({"metric": 3, "bound": 1}, "metric=3 is not a function"),
        ({"metric": largest}, "metric `largest` has no bound"),
        ({"metric": {"a": largest, "b": largest}, "bound": {"a": 1}}, "metric `b` has no bound"),
        ({"metric": largest, "bound": "small"}, "bound='small' of metric `largest` is neither a number"),
        ({"bound": 1}, "bound=1 without a metric"),
        ({"atol": 1, "reference": "original"}, "reference='original' without a metric"),
        ({"metric": largest, "bound": 1, "reference": "own"}, "reference='own' is neither 'original' nor 'stored'"),
        ({"tolerance": "float16", "reference": "stored"}, "the level `float16` compares with the model's own weights"),
        ({"tolerance": {"y": "good"}}, "'good' is not a tolerance level"),
        ({"tolerance": "tight"}, "'tight' is not a tolerance level"),
    ],
)
def test_words_that_mean_nothing(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        Judgement.of(**words)


def test_an_output_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no output logits to judge; there are y, z"):
        checked(tmp_path, 0.0, atol={"logits": 1})
