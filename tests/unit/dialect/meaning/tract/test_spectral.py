"""Fourier transforms of signals whose spectrum is known."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.spectral import complex_to_inner_dim, fft, inner_dim_to_complex, stft
from t2n_core.errors import SpecError

PULSE = np.asarray([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
"""A pulse at 1 of 4, whose spectrum turns backwards by a quarter for each frequency."""


def test_fft_turns_backwards_and_its_inverse_forwards() -> None:
    turns = [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]]
    np.testing.assert_allclose(fft(PULSE, 0, False), turns, atol=1e-15)
    np.testing.assert_allclose(fft(PULSE, 0, True), np.asarray(turns) * [1.0, -1.0], atol=1e-15)


def test_the_inverse_has_no_factor() -> None:
    np.testing.assert_allclose(fft(fft(PULSE, 0, False), 0, True), 4 * PULSE, atol=1e-15)


def test_the_last_axis_is_a_pair() -> None:
    with pytest.raises(SpecError, match="not a real and an imaginary part"):
        fft(np.zeros((4, 3)), 0, False)


def test_stft_windows_each_frame() -> None:
    signal = np.stack([np.arange(1.0, 6.0), np.zeros(5)], axis=-1)
    found = stft(signal, 0, 2, 2, np.asarray([1.0, 10.0]))
    np.testing.assert_allclose(found, [[[21.0, 0.0], [-19.0, 0.0]], [[43.0, 0.0], [-37.0, 0.0]]])


def test_a_short_window_is_centred() -> None:
    signal = np.stack([np.arange(1.0, 5.0), np.zeros(4)], axis=-1)
    assert stft(signal, 0, 4, 1, np.asarray([1.0]))[0, 0].tolist() == [2.0, 0.0]
    assert stft(signal, 0, 4, 1)[0, 0].tolist() == [10.0, 0.0]
    with pytest.raises(SpecError, match="a window of 3 for frames of 2"):
        stft(signal, 0, 2, 1, np.ones(3))


def test_pairs_and_complex_numbers() -> None:
    found = inner_dim_to_complex(np.asarray([[1.0, 2.0]]))
    assert found.tolist() == [1.0 + 2.0j]
    assert complex_to_inner_dim(found).tolist() == [[1.0, 2.0]]
