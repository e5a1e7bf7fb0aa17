"""The judgement of an archive in an engine: once by the definitions of its operators, once by PyTorch's outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from conformance.dialect.judge import OF_REPLY
from conformance.lab.measure.peers.architectures import read_examples
from t2n_core import dialect
from t2n_core.engine.protocol import Engine, EngineReply
from t2n_core.errors import MalformedArchiveError, T2NError
from t2n_core.nnef.reading.archive import ArchiveContent, read_archive
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.outcomes import comparison_outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

Arrays = tuple[NDArray[Any], ...]
EVALUATION: Final = 60.0
"""Seconds for the evaluation of one set of inputs."""


def judge_archive(archive: Path, folder: Path, engine: Engine) -> dict[str, Any]:
    """Return a row: the verdict by definitions on drawn inputs, that by PyTorch on its own inputs, and the times.

    A verdict is `right`, `wrong`, `refused` (the engine gives an error), `crashed` or `timed out`. By definitions an
    archive is refused too if it is malformed: a statement reads a name that none defines. `meaning` compares
    the definitions with PyTorch's outputs: where they differ, the exporter wrote another computation.
    """
    try:
        content = read_archive(archive)
        batches, expected = read_examples(folder, content.document.inputs)
    except (T2NError, KeyError) as wrong:
        return {"definitions": "not evaluated", "reason": _text(wrong)}
    names = list(content.document.outputs)
    reply = engine.run(archive, batches)
    pytorch, why = _verdict(reply, archive, names, batches, expected)
    row: dict[str, Any] = {"pytorch": pytorch, "pytorch_reason": why, "engine_seconds": dict(reply.times)}
    began = time.perf_counter()
    try:
        results = [_evaluated(content, batch) for batch in batches]
        row["evaluation_seconds"] = (time.perf_counter() - began) / len(batches)
        row["meaning"] = "; ".join(map(_difference, [names] * len(batches), expected, results)).strip("; ") or "right"
        row["same_inputs"], row["same_reason"] = _verdict(reply, archive, names, batches, results)
        drawn = [tuple(inputs.values()) for inputs in dialect.draw_inputs(content, count=2)]
        row["definitions"], row["reason"] = _verdict(
            engine.run(archive, drawn), archive, names, drawn, [_evaluated(content, batch) for batch in drawn]
        )
    except MalformedArchiveError as wrong:
        return {**row, "definitions": "refused", "reason": _text(wrong)}
    except T2NError as wrong:
        return {**row, "definitions": "not evaluated", "reason": _text(wrong)}
    return row


def _verdict(
    reply: EngineReply, archive: Path, names: Sequence[str], inputs: Sequence[Arrays], expected: Sequence[Arrays]
) -> tuple[str, str]:
    """Return the verdict on what an engine answered, by the outputs that are expected, and its reason."""
    if reply.status != "ok":
        return OF_REPLY[reply.status], f"{reply.stage}: {reply.message}"[:300]
    samples = [Sample(batch, other) for batch, other in zip(inputs, expected, strict=True)]
    outcome = comparison_outcome(reply, CheckRequest(archive, samples, names), {})
    if outcome.passed:
        return "right", ""
    differing = [
        f"{output.name}: {output.problem or f'{output.max_abs:.3g} off'}"
        for output in outcome.outputs
        if not output.passed
    ]
    return "wrong", "; ".join(differing)[:300]


def _evaluated(content: ArchiveContent, inputs: Arrays) -> Arrays:
    tensors = dialect.evaluate(content, list(inputs), timeout=EVALUATION)
    return tuple(tensor.raw() for tensor in tensors.values())


def _difference(names: Sequence[str], expected: Arrays, actual: Arrays) -> str:
    """Return how the outputs of an archive by its definitions differ from PyTorch's, and nothing if they do not."""
    compared = compare_outputs(expected, actual, names=names)
    return "; ".join(
        f"{output.name}: {output.problem or f'{output.max_abs:.3g} off'}" for output in compared if not output.passed
    )


def _text(wrong: Exception) -> str:
    return f"{type(wrong).__name__}: {wrong}"[:300]
