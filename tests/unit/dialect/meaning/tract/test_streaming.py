"""The first pulse of streams."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.streaming import pulse_cumsum, pulse_delay, pulse_mask, pulse_pad
from t2n_core.errors import SpecError

PULSE = np.asarray([[1, 2, 3, 4]])


def test_cumsum_skips_the_first_frames() -> None:
    assert pulse_cumsum(PULSE, 1, False, 1).tolist() == [[0, 2, 5, 9]]
    assert pulse_cumsum(PULSE, 1, True, 0).tolist() == [[0, 1, 3, 6]]
    assert pulse_cumsum(PULSE, 1, False, 9).tolist() == [[0, 0, 0, 0]]


def test_delay() -> None:
    assert pulse_delay(PULSE, 1, 1, 2).tolist() == [[0, 0, 0, 1, 2, 3]]
    assert pulse_delay(PULSE, 1, 0, 0).tolist() == PULSE.tolist()
    assert pulse_delay(PULSE, 1, 5, 0, True).tolist() == [[0, 0, 0, 0]]


def test_mask() -> None:
    assert pulse_mask(PULSE, 1, 1, 3, 9).tolist() == [[9, 2, 3, 9]]
    assert pulse_mask(PULSE, 1, 0, 7, 9).tolist() == PULSE.tolist()
    assert pulse_mask(PULSE, 1, -1, 3, 9).tolist() == [[1, 2, 3, 9]]
    assert pulse_mask(PULSE, 1, 0, 0, 9).tolist() == pulse_mask(PULSE, 1, 0, -2, 9).tolist() == [[9, 9, 9, 9]]


def test_pad() -> None:
    result = pulse_pad(PULSE, 1, 1, 1, 1, 3, "constant", 9)
    assert result.tolist() == [[9, 2, 3, 9]]
    assert pulse_pad(PULSE, 1, 1, 1, 1, 3, "replicated").tolist() == [[2, 2, 3, 3]]
    assert pulse_pad(PULSE, 1, 1, 0, 1, 3, "constant", 9).tolist() == [[9, 2, 3, 4]]
    assert pulse_pad(PULSE, 1, 1, 0, 1, 3, "replicated").tolist() == [[2, 2, 3, 4]]
    assert pulse_pad(1.0 * PULSE, 1, 1, 2, 2, 3, "constant").tolist() == [[0, 0, 3, 0]]
    for end in (4, 9):
        assert pulse_pad(PULSE, 1, 1, 2, 1, end, "replicated").tolist() == [[2, 2, 3, 4]]
    with pytest.raises(SpecError, match="no border of a stream is called 'reflect'"):
        pulse_pad(PULSE, 1, 1, 1, 1, 3, "reflect")
