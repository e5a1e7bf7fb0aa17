"""The author of a mismatch: the engine or the exporter, by the definitions of the operators as a third voice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from t2n_core import dialect
from t2n_core.check.mismatch.rounding import ROUNDING
from t2n_core.engine.protocol import Engine
from t2n_core.level import DEFAULT_LEVEL
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample
from t2n_core.parity.table import sizes_text
from t2n_core.text import text_of

AUTHOR: Final = "author"
"""Fact of a mismatch: an `Author` as text."""
_MOST_SECONDS: Final = 10.0
"""Seconds after which the evaluation of a large model is given up."""


_MOST_BYTES: Final = 1 << 28
"""Bytes of an archive that is not evaluated: its weights would be in memory in float64."""


class Author(StrEnum):
    """The side whose values differ from what the archive says."""

    ENGINE = "engine"
    EXPORTER = "exporter"
    BOTH = "both"


_TEXT: Final[Mapping[Author, str]] = {
    Author.ENGINE: "the engine: by the definitions of its operators the archive computes PyTorch's values",
    Author.EXPORTER: "the exporter: the engine computes what the archive says, which is not the model",
    Author.BOTH: "neither agrees with the definitions of the archive's operators: both, or rounding",
}


def with_author(mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
    """Return the outcome of a mismatch with its author, at the first size that failed.

    The archive is evaluated in float64 by `t2n_core.dialect`, and runs in the engine once more. Without an author, a
    sentence says why; the outcome of a mismatch that is rounding stays as it is.
    """
    if mismatch.error is None or ROUNDING in mismatch.facts:
        return mismatch
    if mismatch.archive_bytes > _MOST_BYTES:
        return mismatch
    sample = next((one for one in request.samples if one.sizes in mismatch.failed_sizes), None)
    if sample is None:
        return mismatch
    found = _author(engine, request, sample)
    if found is None:
        return mismatch
    where = f" (at {sizes_text([sample.sizes])})" if sample.sizes else ""
    facts = {**mismatch.facts, AUTHOR: found.value} if isinstance(found, Author) else mismatch.facts
    text = _TEXT[found] if isinstance(found, Author) else found
    details = f"{mismatch.error.details}\nwho is wrong{where}: {text}".strip()
    return replace(mismatch, facts=facts, error=replace(mismatch.error, details=details))


def _author(engine: Engine, request: CheckRequest, sample: Sample) -> Author | str | None:
    """Return the author; a text if the archive cannot be evaluated, and None if the sample does not fail again."""
    try:
        found = dialect.evaluate(request.archive, sample.inputs, timeout=_MOST_SECONDS)
    except Exception as unknown:  # an error of a definition is none of the check
        return f"not known, since {text_of(unknown) or type(unknown).__name__}"
    reply = engine.run(request.archive, [sample.inputs], timeout=request.timeout)
    if reply.status != "ok" or not len(reply.outputs[0]) == len(found) == len(sample.expected):
        return None
    meant = [tensor.array.astype(wanted.dtype) for tensor, wanted in zip(found.values(), sample.expected, strict=True)]
    is_model = _agree(request, meant, sample.expected)
    is_engine = _agree(request, meant, [a.astype(b.dtype) for a, b in zip(reply.outputs[0], meant, strict=True)])
    if is_model and is_engine:  # each is within the tolerance of the definitions, on different sides
        return None
    if is_model or is_engine:
        return Author.ENGINE if is_model else Author.EXPORTER
    return Author.BOTH


def _agree(request: CheckRequest, meant: Sequence[Array], found: Sequence[Array]) -> bool:
    """Return whether outputs agree by the criteria, but by no tighter level than the default one.

    Values in float64 are not those of float32 to the last digit, whoever is right.
    """
    own = request.criteria
    levels = {name: max(level, DEFAULT_LEVEL, key=lambda one: one.rank) for name, level in own.levels.items()}
    level = max(own.level, DEFAULT_LEVEL, key=lambda one: one.rank)
    criteria = replace(own, level=level, levels=levels, metrics=())
    return all(one.passed for one in compare_outputs(meant, found, names=request.output_names, criteria=criteria))


__all__ = ["AUTHOR", "Author", "with_author"]
