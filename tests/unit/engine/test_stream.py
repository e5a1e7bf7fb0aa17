"""Pulses of whole sequences, and whole outputs of pulses."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.engine.tract.stream import Stream
from t2n_core.errors import EngineRunError


def test_inputs_are_split_and_outputs_joined() -> None:
    stream = Stream(2, [0, 1], [0, 1], [1, 0])
    first, second = np.arange(6), np.arange(12).reshape(2, 6)
    pulses = list(stream.split_pulses([first, second]))
    assert [pulse.tolist() for pulse, _ in pulses] == [[0, 1], [2, 3], [4, 5]]
    assert [two.shape for _, two in pulses] == [(2, 2)] * 3
    late, immediate = stream.join(pulses)
    assert late.tolist() == [1, 2, 3, 4, 5]
    assert (immediate == second).all()


@pytest.mark.parametrize("lengths", [(5, 5), (4, 6)])
def test_sequences_are_whole_pulses_of_one_length(lengths: tuple[int, int]) -> None:
    arrays = [np.arange(length) for length in lengths]
    with pytest.raises(EngineRunError, match="not a multiple of the pulse of 2"):
        list(Stream(2, [0, 0], [0], [0]).split_pulses(arrays))
