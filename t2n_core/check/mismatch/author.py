"""The author of a mismatch: the engine or the exporter, by the definitions of the operators as a third voice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from t2n_core import dialect
from t2n_core.engine.protocol import Engine
from t2n_core.engine.tract.out_of_range import graph_text
from t2n_core.errors import BudgetError, MeaningError, SecondCallError, SpecError, UndefinedOperatorError
from t2n_core.level import DEFAULT_LEVEL
from t2n_core.parity.comparison import compare_outputs
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
"""If both sides differ from the definitions, one that is farther from them by this factor is named alone: a graph that
amplifies rounding makes the side that is right differ as well."""
_MOST_BYTES: Final = 1 << 28
"""Bytes of an archive that is not evaluated: its weights would be in memory in float64."""


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
    again = mismatch.error.error_class == SecondCallError.__name__
    author = author_of(engine, request, sample, in_second_call=again)
    if author is None:
        return mismatch
    where = f" (at {sizes_text([sample.sizes])})" if sample.sizes else ""
    facts = {**mismatch.facts, AUTHOR: author.value} if isinstance(author, Author) else mismatch.facts
    return replace(mismatch, facts=facts).with_details(f"who is wrong{where}: {author_text(author)}")


def author_text(found: Author | str) -> str:
    """Return a result of `author_of` as text."""
    return _TEXT[found] if isinstance(found, Author) else found


def author_of(
    engine: Engine, request: CheckRequest, sample: Sample, *, in_second_call: bool = False
) -> Author | str | None:
    """Return the author; a text if the archive cannot be evaluated, and None if the sample does not fail again.

    With `in_second_call` it is a mismatch of the second call in one State of the engine.
    """
    if in_second_call:  # the engine in a fresh State agrees with the model
        return Author.EXPORTER if keeps_state(graph_text(request.archive)) else Author.ENGINE
    try:
        by_definitions = dialect.evaluate(
            request.archive, sample.inputs, timeout=_MOST_SECONDS, standard=engine.name.startswith(_OF_STANDARD)
        )
    except (UndefinedOperatorError, BudgetError) as unknown:
        return _unknown(unknown)
    except MeaningError as wrong:
        return Author.EXPORTER if _is_outside_of_a_domain(wrong) else _unknown(wrong)
    except Exception as unknown:  # an error of a definition is none of the check
        return _unknown(unknown)
    reply = engine.run(request.archive, [sample.inputs], timeout=request.timeout)
    if reply.status != "ok" or len(reply.outputs[0]) != len(by_definitions):
        return None
    if len(by_definitions) != len(sample.expected):
        return Author.EXPORTER  # the archive declares other outputs than the model has
    triples = list(zip(by_definitions.values(), sample.expected, reply.outputs[0], strict=True))
    is_model = _agree_by_criteria(
        request, [(one.array, one.dtype, wanted, answer.dtype) for one, wanted, answer in triples]
    )
    is_engine = _agree_by_criteria(
        request, [(one.array, one.dtype, answer, wanted.dtype) for one, wanted, answer in triples]
    )
    if is_model and is_engine:  # each is within the tolerance of the definitions, on different sides
        return None
    if is_model or is_engine:
        return Author.ENGINE if is_model else Author.EXPORTER
    meant = [one.array for one, _, _ in triples]
    of_model, of_engine = (_distance(meant, others) for others in (sample.expected, reply.outputs[0]))
    if of_engine * _FARTHER < of_model:
        return Author.EXPORTER
    return Author.ENGINE if of_model * _FARTHER < of_engine else Author.BOTH


def _is_outside_of_a_domain(wrong: MeaningError) -> bool:
    """Return whether operands of a statement do not fit, so that no engine can compute it: not for the lack of time."""
    cause: BaseException = wrong
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return bool(wrong.statement) and isinstance(cause, (ValueError, IndexError, SpecError))


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
    if any(found.dtype not in (other, dtype) for _, dtype, found, other in outputs):
        return False
    own = request.criteria
    levels = {name: max(level, DEFAULT_LEVEL, key=lambda one: one.rank) for name, level in own.levels.items()}
    level = max(own.level, DEFAULT_LEVEL, key=lambda one: one.rank)
    criteria = replace(own, level=level, levels=levels, metrics=())
    meant = [meaning.astype(found.dtype) for meaning, _, found, _ in outputs]
    found = [found for _, _, found, _ in outputs]
    return all(one.passed for one in compare_outputs(meant, found, names=request.output_names, criteria=criteria))


def _distance(meant: Sequence[Array], found: Sequence[Array]) -> float:
    """Return the largest difference of an output's elements; infinity for other shapes, or other places of NaN."""
    largest = 0.0
    for one, other in zip(meant, found, strict=True):
        if one.shape != other.shape:
            return math.inf
        a, b = one.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return math.inf
        largest = max(largest, float(np.abs(a[finite] - b[finite]).max(initial=0.0)))
    return largest
