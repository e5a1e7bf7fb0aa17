"""Loss from a quantized cache: logits of the same archive with the cache that the engine quantizes, and as it is."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.errors import InputError
from t2n_core.parity.generation.decoding import Decoder
from t2n_core.parity.generation.loss import WeightLoss, weight_loss
from t2n_core.parity.state_pairs import StatePair

TRANSFORMS: Final = {8: "quantize_kv_storage", 4: "quantize_kv_storage_int4"}
"""The engine's transforms by the bits of a stored element."""
PERSISTENCE: Final = 0.9
DEPTH: Final = 100
"""The defaults of tract's command line."""
_SINKS: Final = 4
"""The first tokens, which stay as they are."""
_BLOCK: Final = 32
"""Tokens whose keys share a scale for each channel; the keys of an unfinished block stay as they are."""


@dataclass(frozen=True, slots=True)
class CacheLoss:
    """The logits after each token of a text, with a quantized cache and with one in the dtype of the archive."""

    bits: int
    logits: WeightLoss
    """The loss against the archive with the cache as it is."""
    overlap: float
    """Mean rank overlap of the logits, as tract's command line computes it."""
    bytes: int
    """Size of the cache after the first window of the text."""
    plain_bytes: int
    """Size of the cache as it is."""

    def describe(self) -> str:
        """Return the figures as a line of text."""
        size = f"{self.bytes / 1000:.1f} kB in place of {self.plain_bytes / 1000:.1f}"
        logits = self.logits
        agreement = f"{100 * logits.agreement:.1f} % of the best tokens agree, rank overlap {self.overlap:.3f}"
        perplexity = f"perplexity {logits.perplexity:.4g}, before {logits.reference:.4g}"
        return f"{size}; {perplexity}; {agreement}, divergence {logits.divergence:.2g} nats ({logits.length})"


def cache_loss(
    engine: TractRunner,
    archive: Path,
    state: Sequence[StatePair],
    windows: Sequence[Array],
    bits: int,
    *,
    timeout: float = 60.0,
) -> CacheLoss:
    """Return the loss from a cache of 8 or 4 bits on the windows `[S]` of a text, which are fed token by token.

    Raises EngineError; InputError for an archive whose cache the engine does not quantize.
    """
    if bits not in TRANSFORMS:
        raise InputError(f"a cache of {bits} bits: the engine has {' and '.join(map(str, TRANSFORMS))}")
    Transform.of(TRANSFORMS[bits]).require(engine.version)
    plain, small = (
        _logits(engine, archive, state, windows, transforms, timeout) for transforms in ((), (TRANSFORMS[bits],))
    )
    overlaps: list[float] = []

    def compare_windows() -> Iterator[tuple[Array, Array, Array]]:
        changed = False
        for text, got, expected in zip(windows, small, plain, strict=True):
            overlaps.extend(rank_overlap(*rows) for rows in zip(got, expected, strict=True))
            changed = changed or not np.array_equal(got, expected)
            yield text, got, expected
        if not changed:
            raise InputError(
                f"`{TRANSFORMS[bits]}` changes no logits: no attention of the engine's own operator has a cache",
                hint="export with TractNNEF(reify_sdpa_operator=True); the text needs more than 4 tokens",
            )

    with closing(plain), closing(small):
        loss = weight_loss(compare_windows())
    sizes = [_sizes(pair, len(windows[0]), bits) for pair in state]
    return CacheLoss(
        bits, loss, float(np.mean(overlaps)), sum(size for size, _ in sizes), sum(size for _, size in sizes)
    )


def _logits(
    engine: TractRunner,
    archive: Path,
    state: Sequence[StatePair],
    windows: Iterable[Array],
    transforms: Sequence[str],
    timeout: float,
) -> Generator[Array, None, None]:
    """Yield the logits after each token of a window, in one session of the engine."""
    pairs = [(pair.input, pair.output) for pair in state]
    with engine.session(archive, state=pairs, held_by_engine=True, transforms=transforms, timeout=timeout) as session:
        decoder = Decoder(session, ())
        for window in windows:
            decoder.start()
            yield np.concatenate([decoder.feed(np.array([[token]]), {}) for token in window])


def rank_overlap(got: Array, expected: Array, persistence: float = PERSISTENCE, depth: int = DEPTH) -> float:
    """Return the rank-biased overlap of two vectors of logits, down to a depth.

    Equal vectors overlap by `1 - persistence ** depth`.
    """
    best, others = (np.argsort(-logits, kind="stable")[:depth] for logits in (got, expected))
    common = [len(np.intersect1d(best[:count], others[:count])) / count for count in range(1, len(best) + 1)]
    return float((1 - persistence) * np.sum(common * persistence ** np.arange(len(best))))


def _sizes(pair: StatePair, tokens: int, bits: int) -> tuple[int, int]:
    """Return the bytes of one tensor of a cache after this many tokens: quantized by the engine, and as it is.

    Keys share two factors for each channel and block of tokens, values for each token; they are float32.
    """
    heads = pair.initial.shape[0] * pair.initial.shape[1]
    width = pair.initial.shape[-1]
    row, exact = -(-width * bits // 8), 4 * width
    rest = max(tokens - _SINKS, 0)
    if "key" in pair.input:
        blocks, unfinished = divmod(rest, _BLOCK)
        small = blocks * (_BLOCK * row + 2 * exact) + unfinished * exact
    else:
        small = rest * (row + 8)
    return heads * (min(tokens, _SINKS) * exact + small), heads * tokens * width * pair.initial.dtype.itemsize
