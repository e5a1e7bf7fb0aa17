"""The short-time Fourier transform: a convolution with cosines and sines, or the engine's operator."""

from __future__ import annotations

import torch

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.op.aten.conv import conv
from t2n_core.op.registry import op
from t2n_core.op.weights import constant_values
from t2n_core.torch_graph.custom_ops import spectra as _declared  # noqa: F401  the operator lives there
from t2n_core.torch_graph.simplify.complex_pairs.fourier import waves


@op("t2n_spectra::stft")
def stft_by_waves(g: Emitter, signal: Value, window: Value, hop: int, count: int) -> tuple[Value, Value]:
    """Return the products of each frame with the waves, which are a strided convolution."""
    (size,) = window.shape
    assert isinstance(size, int)
    cosine, sine = waves(size, count, torch.float64)
    both = torch.cat([cosine.T, 0.0 - sine.T]).numpy()[:, None]
    weights = constant_values(window)
    if weights is None:
        kernels = g.mul(g.constant(both.astype(signal.dtype)), g.reshape_to(window, (1, 1, size)))
    else:
        kernels = g.constant((both * weights).astype(signal.dtype))
    parts = conv(g, g.unsqueeze(signal, axes=[1]), kernels, stride=hop)
    return g.take(parts, 1, 0, count), g.take(parts, 1, count, 2 * count)


@op("t2n_spectra::stft", target="tract", since="0.23.7")
def stft_of_the_engine(g: Emitter, signal: Value, window: Value, hop: int, count: int) -> tuple[Value, Value]:
    """Write the engine's operator on complex numbers: the longer the frames, the faster it is than a convolution.

    Before 0.23.7 it takes up to ten times as long as one. It cannot be streamed.
    """
    if signal.dtype != FLOAT32 or g.options.streaming:
        return stft_by_waves(g, signal, window, hop, count)
    pairs = g.pad(g.unsqueeze(signal, axes=[2]), padding=[(0, 0), (0, 0), (0, 1)], border="constant", value=0.0)
    size, frames = window.shape[0], g.node.outputs[0].shape[2]
    shape: tuple[Dim, ...] = (signal.shape[0], frames, size, 2)
    spectrum = g.tract_core_stft(pairs, axis=1, frame=size, stride=hop, window=window, out=Expected(shape, FLOAT32))
    half, part_shape = g.take(spectrum, 2, 0, count), (signal.shape[0], frames, count)
    parts = [g.tract_core_gather(half, part, axis=3, out=Expected(part_shape, FLOAT32)) for part in range(2)]
    return g.permute(parts[0], [0, 2, 1]), g.permute(parts[1], [0, 2, 1])
