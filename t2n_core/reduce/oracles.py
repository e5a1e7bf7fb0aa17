"""Oracles: the right values of a candidate, from a right release, the definitions of operators, or Khronos' tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from t2n_core.engine.protocol import Engine
from t2n_core.nnef.reading.document import Argument, Assignment, Name
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.reduce.program import Array, Program
from t2n_core.scratch import scratch_folder

if TYPE_CHECKING:
    from t2n_core.engine.khronos.engine import KhronosInterpreter

_SHOWN: Final = "t2n_shown_"
_SIZE_ARGUMENTS: Final = frozenset(("shape", "begin", "end", "repeats", "size", "stride", "axes", "padding"))


class Oracle(Protocol):
    """Computes right values."""

    name: str

    def values(self, program: Program, names: Sequence[str]) -> Mapping[str, Array] | None:
        """Return the values of these names; None for a program that is invalid here."""
        ...


class ReleaseOracle:
    """An engine that computes the program correctly, usually another release of tract."""

    def __init__(self, engine: Engine, folder: Path, timeout: float) -> None:
        self.name = f"{engine.name} {engine.version}"
        self._engine, self._folder, self._timeout = engine, folder / "oracle", timeout

    def values(self, program: Program, names: Sequence[str]) -> Mapping[str, Array] | None:
        shown, program = _with_outputs(program, names)
        archive = program.write(self._folder)
        reply = self._engine.run(archive, [list(program.inputs.values())], timeout=self._timeout)
        if reply.status != "ok" or len(reply.outputs[0]) != len(shown):
            return None
        return dict(zip(shown, reply.outputs[0], strict=True))


class DefinitionsOracle:
    """The definitions of tract's operators, in float64, in a process with limits and without an engine."""

    name = "definitions"

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout

    def values(self, program: Program, names: Sequence[str]) -> Mapping[str, Array] | None:
        """Return the values of these names in their own data types; None if a statement cannot be computed."""
        results = list(dict.fromkeys(names))
        inputs = list(program.inputs.values())
        try:
            with scratch_folder() as folder:
                archive = program.write(folder / "oracle")
                values = Evaluator.shared().evaluate(archive, inputs, results=results, seconds=self._timeout)
        except Exception:  # candidates are arbitrary: a definition may fail on one in any way
            return None
        return {name: value.raw() for name, value in values.items()}


class Float64Oracle:
    """The interpreter of the Khronos tools in float64. It has the operators of the standard only."""

    name = "float64"

    def __init__(self, interpreter: KhronosInterpreter, folder: Path, timeout: float) -> None:
        self._interpreter, self._folder, self._timeout = interpreter, folder / "oracle", timeout

    def values(self, program: Program, names: Sequence[str]) -> Mapping[str, Array] | None:
        shown = replace(program, outputs=tuple(dict.fromkeys(names)), symbols={}).prune()
        archive = shown.write(self._folder, strict=True)
        reply = self._interpreter.run_double(archive, [list(shown.inputs.values())], timeout=self._timeout)
        if reply.status != "ok":
            return None
        return dict(zip(shown.outputs, reply.outputs[0], strict=True))


class OnnxOracle:
    """The references of ONNX models: onnxruntime, or ONNX's own evaluator where a model needs it."""

    def __init__(self, reference: str, folder: Path, timeout: float) -> None:
        """Create an oracle by one of the references, or by the first that computes a program if it names none."""
        from t2n_core.onnx_file.references import REFERENCES

        self._references = [reference] if reference in REFERENCES else list(REFERENCES)
        self.name = self._references[0]
        self._folder, self._timeout = folder / "oracle", timeout
        self._takes_contradictions: bool | None = None

    def values(self, program: Program, names: Sequence[str]) -> Mapping[str, Array] | None:
        """Return the values of these names; None if declared shapes contradict each other, and did not in the first."""
        from t2n_core.onnx_file.samples import reference_samples

        contradicts = self._takes_contradictions is not True and program.contradicts()
        if self._takes_contradictions is None:
            self._takes_contradictions = contradicts
        elif contradicts:
            return None
        shown = replace(program, outputs=tuple(dict.fromkeys(names))).prune()
        inputs = tuple(shown.inputs.values())
        try:
            path = shown.write(self._folder)
            computed = reference_samples(path, [inputs], references=self._references, seconds=self._timeout)
        except Exception:  # candidates are arbitrary: a reference may refuse one for any reason
            return None
        return dict(zip(shown.outputs, computed.samples[0].expected, strict=True))


def _with_outputs(program: Program, names: Sequence[str]) -> tuple[list[str], Program]:
    """Return the names, and the program that outputs them; sizes are cast, since only tract has their dtype."""
    sizes = _sizes_of(program)
    outputs: list[str] = []
    casts: list[Assignment] = []
    for name in dict.fromkeys(names):
        if name in sizes:
            outputs.append(f"{_SHOWN}{name}")
            cast = (Argument("input", Name(name)), Argument("to", "i64"))
            casts.append(Assignment((outputs[-1],), "tract_core_cast", cast))
        else:
            outputs.append(name)
    extensions = program.extensions
    if casts and "tract_registry tract_core" not in extensions:
        extensions = ("tract_registry tract_core", *extensions)
    shown = replace(program, outputs=tuple(outputs), assignments=(*program.assignments, *casts), extensions=extensions)
    return list(dict.fromkeys(names)), shown.prune()


def _sizes_of(program: Program) -> set[str]:
    """Return the values that are symbolic sizes: shapes, and what is picked or computed from them."""
    sizes: set[str] = set()
    for assignment in program.assignments:
        operands = [a for a in assignment.arguments if a.name not in _SIZE_ARGUMENTS]
        of_sizes = any(name in sizes for a in operands for name in _names(a.value))
        if assignment.operator == "tract_core_shape_of" or (of_sizes and assignment.operator != "tract_core_cast"):
            sizes.update(assignment.results)
    return sizes


def _names(value: Any) -> list[Name]:
    if isinstance(value, Name):
        return [value]
    return [name for item in value for name in _names(item)] if isinstance(value, list | tuple) else []
