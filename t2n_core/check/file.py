"""Files to check as they are: an NNEF archive or an ONNX model. Each has a reference that computes its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from t2n_core.engine.paths import on_path
from t2n_core.engine.tract.out_of_range import graph_text
from t2n_core.engine.tract.signature import Signature
from t2n_core.errors import InputError, T2NError
from t2n_core.extras import require
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcomes import failure_outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample
from t2n_core.parity.stage import Stage, Status

if TYPE_CHECKING:
    from t2n_core.engine.protocol import Engine
    from t2n_core.nnef.reading.document import Document
    from t2n_core.onnx_file.model import OnnxModel
    from t2n_core.parity.judging.interface import Interface
    from t2n_core.parity.judging.judgement import Judgement
    from t2n_core.parity.outcome import Outcome

EXPECTED: Final = "the expected outputs"
"""The reference of outputs that a user passes, as messages name it."""
STANDARD: Final = "khronos"
"""The target whose engines read NNEF 1.0, and not tract's dialect."""


class CheckedFile(Protocol):
    """A file with a graph."""

    @property
    def path(self) -> Path:
        """Return the path of the file."""

    @property
    def carries(self) -> bool:
        """Return whether a State may carry values between calls, so that calls in a used State are not compared."""

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of the inputs and of the outputs."""

    @property
    def interface(self) -> Interface | None:
        """Return the inputs and outputs that the file states."""

    @property
    def document(self) -> Document:
        """Return the statements of the graph, whose results have the names that an engine gives to nodes."""

    @property
    def origins(self) -> dict[str, str]:
        """Return operator, module and line in PyTorch by the names in `document`, as far as the file states them."""

    def samples(self, inputs: Sequence[tuple[Array, ...]], target: str) -> tuple[list[Sample], str]:
        """Return samples for these inputs, or for drawn ones, and the name of the reference of their outputs."""

    def check(self, engine: Engine, request: CheckRequest, target: str) -> Outcome:
        """Return the outcome of samples that `samples` returned in an engine of a target."""

    def with_author(self, mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
        """Return a mismatch with expected outputs of the user, with its author if that can be found."""

    def with_hint(self, outcome: Outcome, engine: Engine, target: str) -> Outcome:
        """Return the outcome; one of an engine that refuses the file has a hint."""


def open_checked(path: Path, sizes: Mapping[str, int | Sequence[int]]) -> CheckedFile:
    """Return the file at a path; `sizes` are sizes of dynamic dimensions of an ONNX model, or lists of the least one.

    Raises InputError for any other file.
    """
    if not path.exists():
        raise InputError(f"there is no file {path}")
    if is_onnx(path):
        return OnnxFile(path, sizes)
    if sizes:
        raise InputError("--size is for ONNX models", hint="pass an archive's inputs with --inputs x.npz")
    return NnefArchive(path)


def file_request(
    file: CheckedFile,
    inputs: Sequence[tuple[Array, ...]],
    expected: Sequence[tuple[Array, ...]],
    target: str,
    criteria: Judgement,
    timeout: float,
) -> CheckRequest:
    """Return the check of a file in engines for a target, at these inputs, or at drawn ones if there are none.

    Without `expected` the file's own reference computes the outputs. `timeout` is in seconds. Raises InputError if no
    inputs can be drawn, and MeaningError if the outputs cannot be computed.
    """
    if expected:
        samples, reference = [Sample(*pair) for pair in zip(inputs, expected, strict=True)], EXPECTED
    else:
        samples, reference = file.samples(inputs, target)
    return CheckRequest(
        file.path,
        samples,
        file.names[1],
        criteria,
        timeout,
        carries=file.carries,
        reference=reference,
        interface=file.interface,
    )


def check_file(file: CheckedFile, engine: Engine, target: str, request: CheckRequest) -> Outcome:
    """Return the outcome of a request of `file_request` in an engine.

    It has a hint where the engine refuses the file, and the author of a mismatch with outputs that a user expects.
    """
    if request.reference != EXPECTED:
        return file.with_hint(file.check(engine, request, target), engine, target)
    outcome = file.with_hint(check_parity(engine, request), engine, target)
    if outcome.status is not Status.MISMATCH:
        return outcome
    return file.with_author(outcome, on_path(engine, outcome.path, outcome.failed_sizes), request)


def outcome_without_samples(file: CheckedFile, engine: Engine, target: str, why: T2NError, timeout: float) -> Outcome:
    """Return the failure of an engine to load a file, or the error for which there is nothing to compare.

    `timeout` is in seconds.
    """
    from t2n_core.parity.outcome import Outcome

    reply = engine.run(file.path, [], timeout=timeout)
    if reply.status == "ok":
        return Outcome.from_error(why)
    return file.with_hint(failure_outcome(reply, [], {}, timeout), engine, target)


class NnefArchive:
    """An archive, whose operators have definitions."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _text(self) -> str:
        return graph_text(self.path)  # of a large archive it may take seconds

    @property
    def carries(self) -> bool:
        from t2n_core.parity.further_runs.kept_states import keeps_state

        return keeps_state(self._text)

    @property
    def names(self) -> tuple[list[str], list[str]]:
        try:
            signature = Signature.of(self._text)
        except (OSError, ValueError) as wrong:
            raise InputError(f"{self.path} is neither an NNEF archive nor an ONNX model: {wrong}") from None
        return list(signature.inputs), list(signature.outputs)

    @property
    def interface(self) -> Interface | None:
        from t2n_core.parity.judging.interface import interface_of

        return interface_of(self.path)

    @property
    def document(self) -> Document:
        from t2n_core.nnef.reading.archive import read_archive

        return read_archive(self.path).document

    @property
    def origins(self) -> dict[str, str]:
        return {}

    def samples(self, inputs: Sequence[tuple[Array, ...]], target: str) -> tuple[list[Sample], str]:
        from t2n_core.parity.definitions import DEFINITIONS, samples_by_definitions

        return samples_by_definitions(self.path, inputs, standard=target == STANDARD), DEFINITIONS

    def check(self, engine: Engine, request: CheckRequest, target: str) -> Outcome:
        from t2n_core.parity.definitions import check_by_definitions

        return check_by_definitions(engine, request, standard=target == STANDARD)

    def with_author(self, mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
        from t2n_core.check.mismatch.author import with_author

        return with_author(mismatch, engine, request)

    def with_hint(self, outcome: Outcome, engine: Engine, target: str) -> Outcome:
        refused = outcome.stage in (Stage.LOAD, Stage.OPTIMISE)
        if not refused or outcome.error is None or outcome.error.hint:
            return outcome
        option = "--khronos" if target == STANDARD else f"--tract {engine.version}"
        hint = f"an archive is for the release that it was exported for: export it for this one with {option}"
        return replace(outcome, error=replace(outcome.error, hint=hint))


_OF_DRAWN_SIZES = "the sizes are drawn, and the file states no least one: `--size NAME=16..` does"
"""The hint on a model that an engine does not run at some sizes."""


class OnnxFile:
    """An ONNX model, whose outputs onnxruntime computes, or ONNX's own evaluator."""

    carries = True  # tract keeps the states of recurrent operators between calls

    def __init__(self, path: Path, sizes: Mapping[str, int | Sequence[int]]) -> None:
        """Read the model. Raises InputError, and MissingPackageError without the packages of the extra `onnx`."""
        require("an ONNX file", "onnx", "onnxruntime")
        from t2n_core.onnx_file.model import read_model

        self._model: OnnxModel = read_model(path)
        self.path, self._sizes = path, sizes

    @property
    def names(self) -> tuple[list[str], list[str]]:
        return [port.name for port in self._model.inputs], [port.name for port in self._model.outputs]

    @property
    def interface(self) -> Interface | None:
        return self._model.interface

    @property
    def document(self) -> Document:
        from t2n_core.onnx_file.statements import document_of

        return document_of(self._model)

    @property
    def origins(self) -> dict[str, str]:
        from t2n_core.onnx_file.statements import origins_of

        return origins_of(self._model)

    def samples(self, inputs: Sequence[tuple[Array, ...]], target: str) -> tuple[list[Sample], str]:
        from t2n_core.onnx_file.samples import reference_samples

        if target == STANDARD:
            raise InputError("the tools of Khronos read no ONNX files", hint="name releases with --tract")
        computed = reference_samples(self.path, inputs, self._sizes)
        return computed.samples, computed.reference

    def check(self, engine: Engine, request: CheckRequest, target: str) -> Outcome:
        from t2n_core.onnx_file.samples import check_by_references

        return check_by_references(engine, request)

    def with_author(self, mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
        from t2n_core.onnx_file.author import with_author

        return with_author(mismatch, engine, request)

    def with_hint(self, outcome: Outcome, engine: Engine, target: str) -> Outcome:
        from t2n_core.onnx_file.refusals import REFUSAL, refusal_of

        if outcome.error is None:
            return outcome
        is_refusal = outcome.status is Status.ERROR
        refusal = refusal_of(outcome.error.message, self._model.functions) if is_refusal else None
        if refusal is None and outcome.stage is Stage.RUN and set(self._model.symbols) - set(self._sizes):
            return replace(outcome, error=outcome.error.with_hint(_OF_DRAWN_SIZES))
        if refusal is None:
            return outcome
        error = replace(outcome.error.with_hint(refusal.hint), op=refusal.op)
        return replace(outcome, error=error, facts={**outcome.facts, REFUSAL: refusal.kind.value})
