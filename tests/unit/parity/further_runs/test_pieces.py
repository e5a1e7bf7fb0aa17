"""Pieces of a sequence: how a sample is cut, and what is judged of what an engine and the model give for the pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply, KeptStates
from t2n_core.errors import InputError
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.pieces import COMPARED_PIECES, DIFFERENT, PIECES, UNKNOWN, cut_sample
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample

Model = Callable[[Sequence[Array]], tuple[Array, ...]]
SIZES = ((6, 2), (1, 2), (7, 2), (6, 2), (4, 0), (6, 3))
"""Steps, and rows of the cache."""
PAIRS = [(1, 2), (2, 3)]
ALL = SizeRange({"T": (1, None), "P": (0, None)})


def sums(inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return sums of all that came, their last row, the next sum, and all rows that came."""
    x, total, cache = inputs
    y = total + x.cumsum(1)
    return y, y[:, -1], y[:, -1:], np.concatenate([cache, x], 1)


def centred(inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the same with a first output that is less its mean in the piece."""
    y, *rest = sums(inputs)
    return y - y.mean(1, keepdims=True), *rest


def samples(model: Model = sums) -> list[Sample]:
    rng = np.random.default_rng(5)
    result = []
    for steps, rows in SIZES:
        inputs = tuple(rng.standard_normal((2, n, 3)).astype(np.float32) for n in (steps, 1, rows))
        result.append(Sample(inputs, model(inputs), {"T": steps, "P": rows}))
    return result


class Fake:
    """Computes a model, feeds outputs to the next batch, and lets `spoil` change those of fed batches."""

    name, version = "tract", "0.99.1"
    kept_states: KeptStates | None = KeptStates(resets_scans=True, resizes=True)

    def __init__(self, model: Model = sums, spoil: Any = None) -> None:
        self.model, self.spoil = model, spoil
        self.jobs: list[int] = []

    def run(self, archive: Path, batches: Any, *, fed: Any = (), **options: Any) -> EngineReply:
        self.jobs.append(len(batches))
        outputs: list[tuple[Array, ...]] = []
        for index, batch in enumerate(batches):
            inputs, pairs = list(batch), dict(fed).get(index, ())
            for position, output in pairs:
                inputs[position] = outputs[-1][output]
            results = self.model(inputs)
            if pairs and self.spoil == "refuse":
                return EngineReply("error", "run", "no such steps", outputs=tuple(outputs), times={"run": 0.1})
            if pairs and self.spoil is not None:
                results = self.spoil(results)
            outputs.append(results)
        return EngineReply("ok", "run", outputs=tuple(outputs), times={"run": 0.1})

    def close(self) -> None:
        pass


def checked(tmp_path: Path, engine: Fake, model: Any, held: SizeRange = ALL) -> Outcome:
    (tmp_path / "model.tar").write_bytes(b"graph")
    model_samples = samples(engine.model)
    names = ["y", "last", "out_total", "out_cache"]
    request = CheckRequest(tmp_path / "model.tar", model_samples, names, range=held, state=PAIRS, model=model)
    return check_parity(engine, request)


def never(inputs: Any) -> Any:
    pytest.fail("the model was asked, though the pieces give what the whole gives")


def refuse(inputs: Any) -> Any:
    raise InputError("no such steps")


def test_the_smallest_sample_is_cut_in_two_along_time() -> None:
    originals = samples()
    plan = cut_sample(originals, PAIRS, ALL.holds)
    assert plan is not None
    assert (plan.sample, plan.joined) == (4, {0: 1, 1: None, 2: None, 3: None})
    assert [batch[0].shape[1] for batch in plan.batches] == [2, 2]
    np.testing.assert_array_equal(np.concatenate([batch[0] for batch in plan.batches], 1), originals[4].inputs[0])
    assert plan.batches[0][1:] == originals[4].inputs[1:]


@pytest.mark.parametrize(
    ("held", "sample", "cut"),
    [
        (SizeRange({"T": (3, None), "P": (0, None)}), 0, 3),
        (SizeRange({"T": (1, None), "P": (0, 1)}), 4, 1),
        (SizeRange({"T": (1, None), "P": (2, None)}), 0, 3),
    ],
)
def test_all_pieces_are_in_the_range_of_the_archive(held: SizeRange, sample: int, cut: int) -> None:
    plan = cut_sample(samples(), PAIRS, held.holds)
    assert plan is not None
    assert (plan.sample, plan.batches[0][0].shape[1]) == (sample, cut)


NOT_CUT: dict[str, Callable[[Sample], Sample]] = {
    "fixed": lambda sample: replace(sample, sizes={"P": sample.sizes["P"]}),
    "still": lambda sample: replace(sample, inputs=(sample.inputs[0], *sample.inputs[1:], sample.inputs[1])),
    "other state": lambda sample: replace(
        sample, expected=(*sample.expected[:2], sample.expected[2][:, 0], sample.expected[3])
    ),
    "shrinking": lambda sample: replace(sample, expected=(*sample.expected[:3], sample.inputs[2][:, :1])),
    "no output": lambda sample: replace(sample, expected=(sample.expected[1], *sample.expected[1:])),
}


@pytest.mark.parametrize("name", NOT_CUT)
def test_what_cannot_come_in_pieces_is_not_cut(name: str) -> None:
    assert cut_sample([NOT_CUT[name](sample) for sample in samples()], PAIRS, ALL.holds) is None


def test_nothing_is_cut_without_state_or_room() -> None:
    assert cut_sample(samples(), [], ALL.holds) is None
    assert cut_sample(samples(), PAIRS, lambda sizes: sizes["T"] > 4) is None


def test_an_output_whose_other_sizes_follow_the_steps_is_left_out() -> None:
    wide = [
        replace(sample, expected=(*sample.expected, sample.inputs[0] @ sample.inputs[0].mT)) for sample in samples()
    ]
    plan = cut_sample(wide, PAIRS, ALL.holds)
    assert plan is not None
    assert sorted(plan.joined) == [0, 1, 2, 3]


def test_equal_pieces_pass_in_one_job_and_ask_no_model(tmp_path: Path) -> None:
    engine = Fake()
    outcome = checked(tmp_path, engine, never)
    assert outcome.passed
    assert outcome.facts[COMPARED_PIECES] == 2
    assert PIECES not in outcome.facts
    assert engine.jobs == [len(SIZES) + 2]


def test_an_engine_that_keeps_no_state_runs_the_samples_alone(tmp_path: Path) -> None:
    engine = Fake()
    engine.kept_states = None
    outcome = checked(tmp_path, engine, never)
    assert outcome.passed
    assert COMPARED_PIECES not in outcome.facts
    assert engine.jobs == [len(SIZES)]


def test_rounding_asks_no_model(tmp_path: Path) -> None:
    outcome = checked(tmp_path, Fake(spoil=lambda all_: tuple(output * np.float32(1 + 2e-7) for output in all_)), never)
    assert outcome.passed
    assert outcome.facts[COMPARED_PIECES] == 2


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_small_change_of_any_output_is_a_mismatch(place: int, tmp_path: Path) -> None:
    def spoil(outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(output * np.float32(1 + 2e-5 * (index == place)) for index, output in enumerate(outputs))

    outcome = checked(tmp_path, Fake(spoil=spoil), sums)
    name = ["y", "last", "out_total", "out_cache"][place]
    assert outcome.error is not None
    assert outcome.error.error_class == "PiecesError"
    assert outcome.error.message == f"a sequence in 2 pieces at T=4, P=0 gives other outputs than the whole: {name}"
    assert outcome.failed_sizes == ({"T": 4, "P": 0},)


def test_pieces_of_another_shape_or_number_are_a_mismatch(tmp_path: Path) -> None:
    for spoil in (
        lambda outputs: (outputs[0][..., :2], *outputs[1:]),
        lambda outputs: (outputs[0] * np.nan, *outputs[1:]),
    ):
        error = checked(tmp_path, Fake(spoil=spoil), sums).error
        assert error is not None
        assert error.message.endswith("than the whole: y")


def test_pieces_that_only_the_engine_refuses_are_a_mismatch(tmp_path: Path) -> None:
    engine = Fake(spoil="refuse")
    outcome = checked(tmp_path, engine, sums)
    assert engine.jobs == [len(SIZES) + 2, len(SIZES)], "all else ran again without them"
    assert outcome.error is not None
    assert outcome.error.error_class == "PiecesError"
    assert outcome.error.message == "a sequence in 2 pieces at T=4, P=0 fails: no such steps"


@pytest.mark.parametrize(("model", "words"), [(centred, DIFFERENT), (refuse, DIFFERENT), (None, UNKNOWN)])
def test_pieces_that_differ_in_the_model_too_are_a_fact(tmp_path: Path, model: Any, words: str) -> None:
    outcome = checked(tmp_path, Fake(centred), model)
    assert outcome.passed, outcome.describe()
    assert (outcome.facts[PIECES], outcome.facts[COMPARED_PIECES]) == (words, 2)


def test_an_output_is_judged_beside_one_that_differs_in_the_model(tmp_path: Path) -> None:
    spoil = lambda outputs: (*outputs[:2], outputs[2] * np.float32(1 + 2e-5), outputs[3])  # noqa: E731
    error = checked(tmp_path, Fake(centred, spoil), centred).error
    assert error is not None
    assert error.message.endswith("than the whole: out_total")


def test_a_range_that_is_only_text_cuts_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.tar").write_bytes(b"graph")
    outcome = check_parity(Fake(), CheckRequest(tmp_path / "model.tar", samples(), state=PAIRS, range="T >= 1"))
    assert COMPARED_PIECES not in outcome.facts
