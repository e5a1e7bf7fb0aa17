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
    with pytest.raises(SpecError, match="not a real and an imaginary part"):
        inner_dim_to_complex(np.zeros(()))
    with pytest.raises(SpecError, match="a tensor of rank 1 has no axis 1"):
        fft(np.zeros((4, 2)), 1, False)


@pytest.mark.parametrize("inverse", [False, True])
def test_fft_along_each_axis(inverse: bool) -> None:
    along = np.stack([PULSE, 2 * PULSE, np.zeros((4, 2))])
    spectrum = fft(PULSE, 0, inverse)
    np.testing.assert_allclose(fft(along, -1, inverse), [spectrum, 2 * spectrum, 0 * spectrum], atol=1e-15)
    upright = fft(np.swapaxes(along, 0, 1), 0, inverse)
    np.testing.assert_allclose(np.swapaxes(upright, 0, 1)[1], 2 * spectrum, atol=1e-15)


def test_stft_windows_each_frame() -> None:
    signal = np.stack([np.arange(1.0, 6.0), np.zeros(5)], axis=-1)
    result = stft(signal, 0, 2, 2, np.asarray([1.0, 10.0]))
    np.testing.assert_allclose(result, [[[21.0, 0.0], [-19.0, 0.0]], [[43.0, 0.0], [-37.0, 0.0]]])


def test_a_short_window_is_centred() -> None:
    signal = np.stack([np.arange(1.0, 5.0), np.zeros(4)], axis=-1)
    assert stft(signal, 0, 4, 1, np.asarray([1.0]))[0, 0].tolist() == [2.0, 0.0]
    assert stft(signal, 0, 4, 1)[0, 0].tolist() == [10.0, 0.0]
    with pytest.raises(SpecError, match="a window of 3 for frames of 2"):
        stft(signal, 0, 2, 1, np.ones(3))


def test_stft_along_each_axis() -> None:
    signal = np.stack([np.arange(1.0, 6.0), np.zeros(5)], axis=-1)
    several = np.stack([signal, 2 * signal, 3 * signal])
    line = stft(signal, 0, 3, 2)
    assert line.shape == (2, 3, 2)
    np.testing.assert_allclose(line[:, 0], [[6.0, 0.0], [12.0, 0.0]])
    assert stft(several, -1, 3, 2).shape == (3, 2, 3, 2)
    np.testing.assert_allclose(stft(several, 1, 3, 2)[2], 3 * line)
    np.testing.assert_allclose(stft(np.swapaxes(several, 0, 1), 0, 3, 2)[:, :, 1], 2 * line)


def test_a_scalar_is_no_window() -> None:
    signal = np.stack([np.arange(1.0, 6.0), np.zeros(5)], axis=-1)
    np.testing.assert_allclose(stft(signal, 0, 3, 2, np.asarray(7.0)), stft(signal, 0, 3, 2))
    assert stft(signal, 0, 5, 1, np.asarray([1.0]))[0, 0].tolist() == [3.0, 0.0]


def test_pairs_and_complex_numbers() -> None:
    complex_values = inner_dim_to_complex(np.asarray([[1.0, 2.0]]))
    assert complex_values.tolist() == [1.0 + 2.0j]
    assert complex_to_inner_dim(complex_values).tolist() == [[1.0, 2.0]]
    assert inner_dim_to_complex(np.asarray([1.0, 2.0])) == 1.0 + 2.0j
    assert inner_dim_to_complex(np.arange(6.0).reshape(1, 3, 2)).tolist() == [[1j, 2 + 3j, 4 + 5j]]
