"""Samples of an archive alone: its outputs are those by the definitions of its operators, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from t2n_core.errors import MalformedArchiveError
from t2n_core.parity.evaluated import evaluated_samples
from t2n_core.parity.samples import Array, Sample

DEFINITIONS: Final = "the definitions of the operators"
"""The reference of such samples in messages."""


def samples_by_definitions(
    archive: Path, given: Sequence[tuple[Array, ...]] = (), *, standard: bool = False
) -> list[Sample]:
    """Return a sample for each set of inputs, or for drawn ones if none are given.

    With `standard` the definitions are those of NNEF 1.0 where tract's differ.

    Raises MalformedArchiveError, with the statement, for an archive that reads what it does not define, and other
    errors of `evaluated_samples`.
    """
    try:
        return evaluated_samples(archive, given, standard=standard)
    except MalformedArchiveError as wrong:
        message = f"{archive} is malformed, so that engines refuse it: {wrong.message}"
        raise MalformedArchiveError(message, statement=wrong.statement) from wrong
