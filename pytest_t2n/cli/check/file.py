"""The files that `t2n check` takes: an NNEF archive, or an ONNX model. Each knows who computes its expected outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_t2n.cli.arrays import signature_of
from pytest_t2n.cli.engine_choice import runner_of
from t2n_core.engine.tract.onnx_file import is_onnx
from t2n_core.errors import InputError
from t2n_core.extras import importing
from t2n_core.parity.stage import Stage, Status

if TYPE_CHECKING:
    from pytest_t2n.records.cell import SelectedEngine
    from t2n_core.engine.protocol import Engine
    from t2n_core.onnx_file.model import OnnxModel
    from t2n_core.parity.judging.interface import Interface
    from t2n_core.parity.outcome import Outcome
    from t2n_core.parity.request import CheckRequest
    from t2n_core.parity.samples import Array, Sample

STANDARD = "khronos"
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

    def samples(self, inputs: Sequence[tuple[Array, ...]], target: str) -> tuple[list[Sample], str]:
        """Return samples for these inputs, or for drawn ones, and the name of the reference of their outputs."""

    def check(self, engine: SelectedEngine, request: CheckRequest) -> Outcome:
        """Return the outcome in an engine of samples that `samples` returned."""

    def with_author(self, mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
        """Return a mismatch with expected outputs of the user, with its author if that can be found."""

    def with_hint(self, outcome: Outcome, engine: SelectedEngine) -> Outcome:
        """Return the outcome; one of an engine that refuses the file has a hint."""


def open_checked(path: Path, sizes: Mapping[str, int]) -> CheckedFile:
    """Return the file at a path; `sizes` fixes dynamic dimensions of an ONNX model.

    Raises InputError for any other file.
    """
    if not path.exists():
        raise InputError(f"there is no file {path}")
    if is_onnx(path):
        return OnnxFile(path, sizes)
    if sizes:
        raise InputError("--size is for ONNX models", hint="pass an archive's inputs with --inputs x.npz")
    return NnefArchive(path)


@dataclass(frozen=True, slots=True)
class NnefArchive:
    """An archive, whose operators have definitions."""

    path: Path
    carries: bool = False

    @property
    def names(self) -> tuple[list[str], list[str]]:
        return signature_of(self.path)

    @property
    def interface(self) -> Interface | None:
        from t2n_core.parity.judging.interface import interface_of

        return interface_of(self.path)

    def samples(self, inputs: Sequence[tuple[Array, ...]], target: str) -> tuple[list[Sample], str]:
        from t2n_core.parity.definitions import DEFINITIONS, samples_by_definitions

        return samples_by_definitions(self.path, inputs, standard=target == STANDARD), DEFINITIONS

    def check(self, engine: SelectedEngine, request: CheckRequest) -> Outcome:
        from t2n_core.parity.definitions import check_by_definitions

        return check_by_definitions(runner_of(engine), request, standard=engine.target == STANDARD)

    def with_author(self, mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
        from t2n_core.check.mismatch.author import with_author

        return with_author(mismatch, engine, request)

    def with_hint(self, outcome: Outcome, engine: SelectedEngine) -> Outcome:
        if outcome.stage is not Stage.LOAD or outcome.error is None or outcome.error.hint:
            return outcome
        option = "--khronos" if engine.target == STANDARD else f"--tract {engine.version}"
        hint = f"an archive is for the release that it was exported for: export it for this one with {option}"
        return replace(outcome, error=replace(outcome.error, hint=hint))


class OnnxFile:
    """An ONNX model, whose outputs onnxruntime computes, or ONNX's own evaluator."""

    carries = True  # tract keeps the states of recurrent operators between calls

    def __init__(self, path: Path, sizes: Mapping[str, int]) -> None:
        """Read the model. Raises InputError, and MissingPackageError without the packages of the extra `onnx`."""
        with importing("an ONNX file"):
            import onnxruntime  # noqa: F401  for one message about both packages

            from t2n_core.onnx_file.model import read_model

            self._model: OnnxModel = read_model(path)
        self.path, self._sizes = path, sizes

    @property
    def names(self) -> tuple[list[str], list[str]]:
        return [port.name for port in self._model.inputs], [port.name for port in self._model.outputs]

    @property
    def interface(self) -> Interface | None:
        return self._model.interface

    def samples(self, inputs: Sequence[tuple[Array, ...]], target: str) -> tuple[list[Sample], str]:
        from t2n_core.onnx_file.samples import reference_samples

        if target == STANDARD:
            raise InputError("the tools of Khronos read no ONNX files", hint="name releases with --tract")
        computed = reference_samples(self.path, inputs, self._sizes)
        return computed.samples, computed.reference

    def check(self, engine: SelectedEngine, request: CheckRequest) -> Outcome:
        from t2n_core.onnx_file.samples import check_by_references

        return check_by_references(runner_of(engine), request)

    def with_author(self, mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
        return mismatch

    def with_hint(self, outcome: Outcome, engine: SelectedEngine) -> Outcome:
        from t2n_core.onnx_file.refusals import REFUSAL, refusal_of

        if outcome.status is not Status.ERROR or outcome.error is None or outcome.error.hint:
            return outcome
        refusal = refusal_of(outcome.error.message)
        if refusal is None:
            return outcome
        error = replace(outcome.error, hint=refusal.hint, op=refusal.op)
        return replace(outcome, error=error, facts={**outcome.facts, REFUSAL: refusal.kind.value})
