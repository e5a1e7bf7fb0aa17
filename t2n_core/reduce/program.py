"""A candidate of a reduction: a graph with the values of its inputs and weights."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import InputError
from t2n_core.nnef.reading.archive import ArchiveContent, StoredTensor, tensor_bytes
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.document import Argument, Assignment, FragmentText, value_text
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.spec import TargetName

Array = NDArray[Any]
Weight = Array | StoredTensor

ONNX_FILE: Final = "model.onnx"
"""The file of an ONNX model in the folder of a case."""
_EXTERNALS: Final = ("external", "tract_core_external")
_GENERIC_TYPES: Final = {"f": "scalar", "b": "logical", "i": "integer", "u": "integer"}
_CORE: Final = "tract_registry tract_core"


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A graph with the values of its inputs and weights. The label of a weight is its name."""

    inputs: Mapping[str, Array]
    weights: Mapping[str, Weight]
    assignments: tuple[Assignment, ...]
    outputs: tuple[str, ...]
    signatures: Signatures
    extensions: tuple[str, ...] = ()
    fragments: Mapping[str, FragmentText] = field(default_factory=dict)
    symbols: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    """Input -> axis -> its symbolic size."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """The declarations of computed values of an ONNX model, which may contradict what an engine infers."""

    @property
    def target(self) -> TargetName:
        return self.signatures.target

    def contradicts(self) -> bool:
        """Return whether declared shapes of values contradict the operators."""
        return False

    @property
    def inlines_sizes(self) -> bool:
        """Return whether a value that is a size may be replaced by an integer in the text."""
        return True

    @property
    def operators(self) -> int:
        """Return the number of operations."""
        return len(self.assignments)

    @property
    def elements(self) -> int:
        """Return the number of elements of all inputs and weights."""
        return sum(int(array.size) for array in (*self.inputs.values(), *self.weights.values()))

    @property
    def size(self) -> tuple[int, int, int]:
        """Return what a reduction minimises: operators, elements, characters."""
        return self.operators, self.elements, len(self.text())

    def results(self) -> list[str]:
        """Return the names of all computed values, in order."""
        return [name for assignment in self.assignments for name in assignment.results]

    def prune(self) -> Program:
        """Return the program without what no output depends on."""
        needed, live_assignments = set(self.outputs), []
        for assignment in reversed(self.assignments):
            if not needed.isdisjoint(assignment.results):
                live_assignments.append(assignment)
                needed.update(assignment.names())
        called = self._used_operators(live_assignments)
        return replace(
            self,
            inputs={name: array for name, array in self.inputs.items() if name in needed},
            weights={name: array for name, array in self.weights.items() if name in needed},
            assignments=tuple(reversed(live_assignments)),
            fragments={name: text for name, text in self.fragments.items() if name in called},
            symbols={name: axes for name, axes in self.symbols.items() if name in needed},
            declared={name: declaration for name, declaration in self.declared.items() if name in needed},
        )

    def _used_operators(self, assignments: Iterable[Assignment]) -> set[str]:
        called = {word for assignment in assignments for word in (assignment.operator, str(assignment.get("body", "")))}
        waiting = [*called]
        while waiting:
            fragment = self.fragments.get(waiting.pop())
            if fragment is not None:
                waiting += fragment.uses - called
                called |= fragment.uses
        return called

    def with_assignment(self, index: int, assignment: Assignment) -> Program:
        """Return the program with one assignment replaced."""
        return replace(self, assignments=(*self.assignments[:index], assignment, *self.assignments[index + 1 :]))

    def with_arguments(self, change: Callable[[Assignment, Argument], Any]) -> Program:
        """Return the program with the value of each argument replaced by `change` of it."""

        def one(assignment: Assignment) -> Assignment:
            arguments = tuple(Argument(a.name, change(assignment, a)) for a in assignment.arguments)
            return replace(assignment, arguments=arguments)

        return replace(self, assignments=tuple(map(one, self.assignments)))

    # ------------------------------------------------------------------------------------------------------ writing
    def text(self, *, strict: bool = False) -> str:
        """Return the content of `graph.nnef`; `strict` is for the Khronos tools, without extensions."""
        strict = strict or self.target == "khronos"
        lines = ["version 1.0;", ""]
        if extensions := () if strict else self._extensions():
            lines += [*(f"extension {extension};" for extension in extensions), ""]
        for fragment in self.fragments.values():
            lines += [fragment.text.strip(), ""]
        lines += [f"graph network({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})", "{"]
        lines += [f"  {self._external(name, array, strict)};" for name, array in self.inputs.items()]
        lines += [f"  {_variable(name, weight)};" for name, weight in self.weights.items()]
        lines += [f"  {self.signatures.positional(assignment).text()};" for assignment in self.assignments]
        return "\n".join([*lines, "}", ""])

    def _extensions(self) -> list[str]:
        typed = any(array.dtype != np.float32 for array in self.inputs.values())
        return list(dict.fromkeys([*([_CORE] if typed else []), *self.extensions]))

    def _external(self, name: str, array: Array, strict: bool) -> str:
        axes = self.symbols.get(name, {})
        shape = value_text([axes.get(axis, extent) for axis, extent in enumerate(array.shape)])
        if array.dtype == np.float32 or strict:
            return f"{name} = external<{_GENERIC_TYPES[array.dtype.kind]}>(shape = {shape})"
        kind = array.dtype.name.replace("float", "f").replace("uint", "u").replace("int", "i")
        return f'{name} = tract_core_external(shape = {shape}, datum_type = "{kind}")'

    def write(self, folder: Path, *, strict: bool = False) -> Path:
        """Write an archive over the content of `folder`, and return its path."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / GRAPH_FILE).write_text(self.text(strict=strict), encoding="utf-8", newline="\n")
        for name, weight in self.weights.items():
            (folder / f"{name}.dat").write_bytes(tensor_bytes(weight))
        return folder

    # ------------------------------------------------------------------------------------------------------ reading
    @classmethod
    def of(cls, content: ArchiveContent, inputs: Sequence[Array], signatures: Signatures) -> Program:
        """Return an archive with its inputs, in graph order, as a program. Raises InputError if they do not fit."""
        document = content.document
        if len(inputs) != len(document.inputs):
            raise InputError(f"{len(inputs)} inputs are passed, the graph has {len(document.inputs)}")
        signatures = signatures.with_fragments(document.fragments)
        weights, symbols, calls = {}, {}, []
        for assignment in document.assignments:
            bound = signatures.bind(assignment)
            if bound.operator in _EXTERNALS:
                symbols[bound.results[0]] = _symbolic_axes(bound.get("shape", []))
            elif bound.operator == "variable":
                label = str(bound.get("label"))
                if label not in content.tensors:
                    raise InputError(f"the archive has no weight {label!r}")
                weights[bound.results[0]] = content.tensors[label]
            else:
                calls.append(bound)
        return cls(
            dict(zip(document.inputs, inputs, strict=True)),
            weights,
            tuple(calls),
            document.outputs,
            signatures,
            document.extensions,
            document.fragments,
            {name: axes for name, axes in symbols.items() if axes},
        ).prune()


def _symbolic_axes(shape: Any) -> dict[int, Any]:
    return {axis: extent for axis, extent in enumerate(shape) if not isinstance(extent, int)}


def _variable(name: str, weight: Weight) -> str:
    kind = "f" if isinstance(weight, StoredTensor) else weight.dtype.kind
    return f'{name} = variable<{_GENERIC_TYPES[kind]}>(shape = {list(weight.shape)}, label = "{name}")'
