"""The author of a mismatch: the engine or the exporter, by the definitions of the operators as a third voice."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from t2n_core.engine.protocol import Engine
from t2n_core.engine.tract.out_of_range import graph_text
from t2n_core.errors import BudgetError, MeaningError, SecondCallError, UndefinedOperatorError
from t2n_core.level import DEFAULT_LEVEL
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.parity.evaluation.noise import Noise, with_noise
from t2n_core.parity.further_runs.kept_states import keeps_state
from t2n_core.parity.outcome import ROUNDING, Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample
from t2n_core.parity.stage import AUTHOR, Author
from t2n_core.parity.table import sizes_text
from t2n_core.text import text_of

_OF_STANDARD: Final = "khronos"
"""Beginning of the names of the engines that read NNEF 1.0, and not tract's dialect."""
_MOST_SECONDS: Final = 10.0
"""Seconds after which the evaluation of a large model is given up."""
_FARTHER: Final = 50.0
"""If both sides differ from the definitions, only the side farther from them by this factor is named: a graph that
amplifies rounding makes the correct side differ as well."""
_NOISE: Final = (1, 4, 16) * 3
"""Units in the last place by which inputs and weights are moved before the exporter is named: nets round each value."""
_AMPLE: Final = 4.0
"""A model that is off by more than this many times the effect of such noise is not off by rounding."""
_FRAGILE: Final = "not known, since inputs and weights that differ by rounding change the outputs as much"
_MOST_BYTES: Final = 1 << 28
"""Bytes of an archive that is not evaluated: its weights would be in memory in float64."""


_TEXT: Final[Mapping[Author, str]] = {
    Author.ENGINE: "the engine: by the definitions of its operators the archive computes PyTorch's values",
    Author.EXPORTER: "the exporter: the engine computes what the archive says, which is not the model",
    Author.BOTH: "neither agrees with the definitions of the archive's operators: both, or rounding",
}


def with_author(mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
    """Return the outcome of a mismatch with its author, at the first size that failed.

    The archive is evaluated in float64 in a process with limits, and runs in the engine once more. Without an author, a
    sentence says why; the outcome of a mismatch that is rounding stays as it is.
    """
    if mismatch.error is None or ROUNDING in mismatch.facts:
        return mismatch
    if mismatch.archive_bytes > _MOST_BYTES:
        return mismatch
    sample = next((sample for sample in request.samples if sample.sizes in mismatch.failed_sizes), None)
    if sample is None:
        return mismatch
    again = mismatch.error.error_class == SecondCallError.__name__
    author = author_of(engine, request, sample, in_second_call=again)
    if author is None:
        return mismatch
    where = f" (at {sizes_text([sample.sizes])})" if sample.sizes else ""
    facts = {**mismatch.facts, AUTHOR: author.value} if isinstance(author, Author) else mismatch.facts
    return replace(mismatch, facts=facts).with_details(f"who is wrong{where}: {author_text(author)}")


def author_text(author: Author | str) -> str:
    """Return a result of `author_of` as text."""
    return _TEXT[author] if isinstance(author, Author) else author


def author_of(
    engine: Engine, request: CheckRequest, sample: Sample, *, in_second_call: bool = False
) -> Author | str | None:
    """Return the author; a text if the archive cannot be evaluated, and None if the sample does not fail again.

    With `in_second_call` it is a mismatch of the second call in one State of the engine.
    """
    if in_second_call:  # the engine in a fresh State agrees with the model
        return Author.EXPORTER if keeps_state(graph_text(request.archive)) else Author.ENGINE
    standard = engine.name.startswith(_OF_STANDARD)
    try:
        by_definitions = Evaluator.shared().evaluate(
            request.archive, sample.inputs, seconds=_MOST_SECONDS, standard=standard
        )
    except (UndefinedOperatorError, BudgetError) as unknown:
        return _unknown(unknown)
    except MeaningError as wrong:
        return Author.EXPORTER if wrong.statement and wrong.is_outside_of_domain else _unknown(wrong)
    except Exception as unknown:  # a definition's error is not the check's
        return _unknown(unknown)
    reply = engine.run(request.archive, [sample.inputs], timeout=request.timeout)
    if reply.status != "ok" or len(reply.outputs[0]) != len(by_definitions):
        return None
    if len(by_definitions) != len(sample.expected):
        return Author.EXPORTER  # the archive declares other outputs than the model has
    triples = list(zip(by_definitions.values(), sample.expected, reply.outputs[0], strict=True))
    is_model = _agree_by_criteria(
        request, [(tensor.array, tensor.dtype, expected, answer.dtype) for tensor, expected, answer in triples]
    )
    is_engine = _agree_by_criteria(
        request, [(tensor.array, tensor.dtype, answer, expected.dtype) for tensor, expected, answer in triples]
    )
    if is_model and is_engine:  # each is within the tolerance of the definitions, on different sides
        return None
    arrays = [tensor.array for tensor in by_definitions.values()]
    of_model, of_engine = (_distance(arrays, others) for others in (sample.expected, reply.outputs[0]))
    if is_model or (not is_engine and of_model * _FARTHER < of_engine):
        return Author.ENGINE
    if is_engine or of_engine * _FARTHER < of_model:
        return _FRAGILE if _is_within_rounding(of_model, request, sample, arrays, standard) else Author.EXPORTER
    return Author.BOTH


def _is_within_rounding(
    distance: float, request: CheckRequest, sample: Sample, by_definitions: Sequence[Array], standard: bool
) -> bool:
    """Return whether inputs and weights that differ by rounding move the outputs as far as the model is from them.

    They do where rounding decides the order of two scores, or a sign: an engine and the definitions may then agree by
    chance, and differ from a model that is computed just as well.
    """
    end = time.monotonic() + _MOST_SECONDS
    for seed, ulps in enumerate(_NOISE if math.isfinite(distance) else ()):
        inputs = [with_noise(array, ulps, np.random.default_rng(seed)) for array in sample.inputs]
        left = end - time.monotonic()
        if left <= 0:
            return False
        try:
            near = Evaluator.shared().evaluate(
                request.archive, inputs, seconds=left, standard=standard, noise=Noise(ulps, seed)
            )
        except Exception:  # outside of the domain, or too slow
            return False
        if distance <= _AMPLE * _distance(by_definitions, [tensor.array for tensor in near.values()]):
            return True
    return False


def _unknown(reason: Exception) -> str:
    return f"not known, since {text_of(reason) or type(reason).__name__}"


def _agree_by_criteria(
    request: CheckRequest, outputs: Sequence[tuple[Array, np.dtype[Any], Array, np.dtype[Any]]]
) -> bool:
    """Return whether outputs agree by the criteria, or by the default level where theirs is tighter.

    Each output is the value by the definitions with its data type, the value of one side, and the data type of the
    other side. If both sides have the same type, they are compared in it, since not every definition has a type;
    otherwise the side must have the type by the definitions. Values in float64 and float32 differ in the last digit,
    whichever side is right.
    """
    if any(array.dtype not in (other, dtype) for _, dtype, array, other in outputs):
        return False
    base = request.criteria
    levels = {name: max(level, DEFAULT_LEVEL, key=lambda item: item.rank) for name, level in base.levels.items()}
    level = max(base.level, DEFAULT_LEVEL, key=lambda item: item.rank)
    criteria = replace(base, level=level, levels=levels, metrics=())
    expected = [meaning.astype(array.dtype) for meaning, _, array, _ in outputs]
    actual = [array for _, _, array, _ in outputs]
    return all(
        output.passed for output in compare_outputs(expected, actual, names=request.output_names, criteria=criteria)
    )


def _distance(expected: Sequence[Array], actual: Sequence[Array]) -> float:
    """Return the largest difference of an output's elements; infinity for other shapes, or other places of NaN."""
    largest = 0.0
    for array, other in zip(expected, actual, strict=True):
        if array.shape != other.shape:
            return math.inf
        a, b = array.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return math.inf
        largest = max(largest, float(np.abs(a[finite] - b[finite]).max(initial=0.0)))
    return largest
