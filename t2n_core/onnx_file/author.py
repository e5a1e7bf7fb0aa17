"""The author of a mismatch with expected outputs: the engine, or the exporter of the ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from t2n_core.engine.protocol import Engine
from t2n_core.errors import SecondCallError, T2NError
from t2n_core.onnx_file.samples import reference_samples
from t2n_core.parity.check import check_parity
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.stage import AUTHOR, Author

_TEXT: Final[Mapping[Author, str]] = {
    Author.ENGINE: "the engine: {reference} computes the expected values from the file",
    Author.EXPORTER: "the exporter: the engine computes what {reference} does from the file, which is not expected",
    Author.BOTH: "neither the engine nor the expected values agree with {reference}",
}


def with_author(mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
    """Return the outcome of a mismatch with its author, as far as a reference can compute the outputs."""
    if mismatch.error is None:
        return mismatch
    try:
        computed = reference_samples(request.archive, [sample.inputs for sample in request.samples])
    except T2NError:
        return mismatch
    in_second_call = mismatch.error.error_class == SecondCallError.__name__  # which no reference has
    by_file = replace(request, samples=computed.samples, reference=computed.reference)
    if not in_second_call and check_parity(engine, by_file).passed:
        author = Author.EXPORTER
    else:
        pairs = zip(computed.samples, request.samples, strict=True)
        compared = (
            compare_outputs(by.expected, sample.expected, names=request.output_names, criteria=request.criteria)
            for by, sample in pairs
        )
        author = Author.ENGINE if all(output.passed for outputs in compared for output in outputs) else Author.BOTH
    facts = {**mismatch.facts, AUTHOR: author.value}
    text = _TEXT[author].format(reference=computed.reference)
    return replace(mismatch, facts=facts).with_details(f"who is wrong: {text}")
