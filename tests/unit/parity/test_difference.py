"""`difference` finds what the full comparison finds, for any arrays; `unmoved_outputs` what `sensitivities` finds."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.parity import tally
from t2n_core.parity.comparison import compare, difference
from t2n_core.parity.judging.judgement import DEFAULT_CRITERIA, Judgement
from t2n_core.parity.samples import Sample
from t2n_core.parity.sensitivity import sensitivities, unmoved_outputs
from t2n_core.parity.tolerance import LEVELS

DTYPES = ("f2", "f4", "f8", "i4", "i8", "u1", "u8", "?", "c8")
SHAPES = ((), (0,), (1,), (3, 5), (11, 2))
CRITERIA = (
    *map(Judgement.parse, LEVELS),
    Judgement.of(atol=0.01),
    Judgement.of(rtol=0.1),
    Judgement.of({"y": "ultra"}, atol={"z": 1}),
    Judgement.of(metric=lambda expected, actual: 0, bound=1),
)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind in "iu" and rng.random() < 0.3:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    if np.dtype(dtype).kind in "iu?":
        return rng.integers(0, 2, shape).astype(dtype)
    return np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 300 if dtype == "f8" else 6)).astype(dtype)


def changed(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return a copy with noise, and often with a NaN, an infinity, a zero or an extreme value at some places."""
    copy, kind = array.copy(), array.dtype.kind
    if kind == "f" and rng.random() < 0.7:
        copy *= (1 + 10.0 ** -rng.integers(1, 9) * rng.standard_normal(array.shape)).astype(array.dtype)
    for _ in range(rng.integers(0, 3) if copy.size and kind in "fiu" else 0):
        limits = np.finfo(array.dtype) if kind == "f" else np.iinfo(array.dtype)
        extremes = [limits.min, limits.max, 0, 1, *([np.nan, np.inf, -np.inf, -0.0] if kind == "f" else [])]
        copy.reshape(-1)[rng.integers(copy.size)] = extremes[rng.integers(len(extremes))]
    return copy


def pair_of(rng: np.random.Generator, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    first = drawn(rng, SHAPES[rng.integers(len(SHAPES))], dtype)
    if rng.random() < 0.3:
        first = changed(rng, first)
    others = (changed(rng, first), changed(rng, first), drawn(rng, first.shape, dtype), drawn(rng, (2,), dtype))
    other = others[rng.integers(len(others))]
    return first, other.astype("f4") if dtype != "c8" and rng.random() < 0.1 else other


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("chunk", [4, 1 << 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_difference_is_that_of_the_full_comparison(monkeypatch, dtype, chunk):
    monkeypatch.setattr(tally, "_CHUNK", chunk)
    rng = np.random.default_rng([DTYPES.index(dtype), chunk])
    for turn in range(300):
        first, other = pair_of(rng, dtype)
        criteria, name = CRITERIA[turn % len(CRITERIA)], "yz"[turn % 2]
        full = compare(first, other, name=name, criteria=criteria)
        brief = difference(first, other, name=name, criteria=criteria)
        assert (brief.max_abs, brief.outside, brief.passed) == (full.max_abs, full.outside, full.passed)
        assert difference(first, other, name=name, criteria=criteria, until_failure=True).passed == full.passed


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("dtype", DTYPES)
def test_unmoved_outputs_are_the_weak_ones_at_the_default_level(dtype):
    rng = np.random.default_rng(DTYPES.index(dtype))
    for _ in range(200):
        first, other = pair_of(rng, dtype)
        samples = [Sample((), (values, first)) for values in (first, other, changed(rng, first))]
        of_all = sensitivities(samples, (), DEFAULT_CRITERIA, strays=True)
        assert unmoved_outputs(samples) == {index for index, sensitivity in enumerate(of_all) if sensitivity.weak}


def test_nothing_is_read_after_a_failure(monkeypatch):
    monkeypatch.setattr(tally, "_CHUNK", 4)
    first, other = np.zeros(40, np.float32), np.zeros(40, np.float32)
    other[[1, 30]] = 1, 9
    comparison = difference(first, other, name="y", criteria=DEFAULT_CRITERIA, until_failure=True)
    assert (comparison.passed, comparison.max_abs) == (False, 1)
    assert difference(first, other, name="y", criteria=DEFAULT_CRITERIA).max_abs == 9
