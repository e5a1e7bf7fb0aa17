"""Discrete Fourier transforms, and complex numbers as pairs."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array, all_axes
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def _complex(pairs: Array, op: str) -> Array:
    if pairs.ndim < 1 or pairs.shape[-1] != 2:
        raise SpecError(f"the last axis of {pairs.shape} is not a real and an imaginary part", op=op)
    return np.asarray(pairs[..., 0] + 1j * pairs[..., 1])


def _pairs(values: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1)


@defines("tract_core_fft")
def fft(input: Array, axis: int, inverse: bool) -> Array:
    """Return the discrete Fourier transform along an axis, without a factor.

    Formula: X[k] = sum over n of x[n] * exp(-2 pi i k n / N); `inverse`: with +2 pi i, and without the factor 1 / N.
    Shapes: same as the input, whose last axis has extent 2: real and imaginary part. `axis` is not the last.
    Source: torch.fft.fft (norm "backward"); for the inverse norm "forward"; tract core/src/ops/fft.rs.
    """
    values = _complex(input, "tract_core_fft")
    canonical_axis = all_axes(input.ndim - 1, axis)[0]
    return _pairs(
        np.fft.ifft(values, axis=canonical_axis, norm="forward") if inverse else np.fft.fft(values, axis=canonical_axis)
    )


@defines("tract_core_stft")
def stft(input: Array, axis: int, frame: int, stride: int, window: Array | None = None) -> Array:
    """Return the discrete Fourier transforms of frames along an axis.

    Formula: X[f, k] = sum over n < frame of x[f * stride + n] * w[n] * exp(-2 pi i k n / frame). Shapes: the axis
    becomes two: floor((extent - frame) / stride) + 1 frames, then `frame` frequencies; the last axis of input and
    result has extent 2. A window that is shorter than the frame has zeros around it, the odd one after; without one w
    is 1.
    Domain: frame <= extent; the window has at most `frame` elements.
    Source: torch.stft(center=False, onesided=False); tract core/src/ops/fft.rs.
    """
    values = _complex(input, "tract_core_stft")
    canonical_axis = all_axes(input.ndim - 1, axis)[0]
    weights = np.ones(frame)
    if window is not None and np.asarray(window).ndim:
        if len(window) > frame:
            raise SpecError(f"a window of {len(window)} for frames of {frame}", op="tract_core_stft")
        before = (frame - len(window)) // 2
        weights = np.pad(window, (before, frame - len(window) - before))
    frames = np.lib.stride_tricks.sliding_window_view(values, frame, axis=canonical_axis)
    frames = frames[(slice(None),) * canonical_axis + (slice(None, None, stride),)]
    return _pairs(np.moveaxis(np.fft.fft(frames * weights, axis=-1), -1, canonical_axis + 1))


@defines("tract_core_inner_dim_to_complex", result="computed")
def inner_dim_to_complex(input: Array) -> Array:
    """Return complex numbers from pairs of real and imaginary part.

    Shapes: without the last axis, which has extent 2. Only 0.19 has complex tensors.
    Source: tract core/src/ops/math/complex.rs.
    """
    return _complex(input, "tract_core_inner_dim_to_complex")


@defines("tract_core_complex_to_inner_dim", result="computed")
def complex_to_inner_dim(input: Array) -> Array:
    """Return pairs of real and imaginary part from complex numbers.

    Shapes: with a last axis of extent 2. Only 0.19 has complex tensors.
    Source: tract core/src/ops/math/complex.rs.
    """
    return _pairs(input)
