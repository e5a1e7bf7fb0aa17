"""A case of an operator: arguments, the graph of one statement, and the result that the definition gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.dialect.arrays import DATA_TYPES, Array
from t2n_core.dialect.registry import Definition
from t2n_core.nnef.dat import header
from t2n_core.nnef.signatures import Signature
from t2n_core.nnef.writer import argument_text

_NAMES = {kind: name for name, kind in reversed(DATA_TYPES.items()) if name != "tdim"}


def name_in(name: str, signature: Signature) -> str | None:
    """Return the name of an argument in a release: the only argument of an operator may have another name there."""
    if signature.parameter(name) is None and len(signature.parameters) == 1:
        return signature.parameters[0].name
    return name if signature.parameter(name) is not None else None


@dataclass(frozen=True)
class Case:
    """Arguments of an operator, by the names of its signature; tensors are arrays, or lists of arrays."""

    op: str
    arguments: Mapping[str, Any]
    constant: frozenset[str] = field(default_factory=frozenset)
    """The tensors that are stored in the archive, because the engine needs their values to load the graph."""

    def tensors(self) -> Iterator[tuple[str, str, Array]]:
        """Yield each tensor with the argument that it belongs to and its name in the graph."""
        for name, value in self.arguments.items():
            if isinstance(value, np.ndarray):
                yield name, f"{name}_", value
            elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                for at, array in enumerate(value):
                    yield name, f"{name}_{at}", array

    def inputs(self) -> list[Array]:
        """Return the tensors that are inputs of the graph, in its order."""
        return [array for name, _, array in self.tensors() if name not in self.constant]

    def statement(self, signature: Signature) -> str:
        """Return the statement as text, with every argument by its name."""
        parts = []
        for name, value in self.arguments.items():
            written = name_in(name, signature)
            if isinstance(value, np.ndarray):
                parts.append(f"{written} = {name}_")
            elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                parts.append(f"{written} = [{', '.join(f'{name}_{at}' for at in range(len(value)))}]")
            else:
                parts.append(f"{written} = {argument_text(value)}")
        results = self.results(signature)
        left = f"( {', '.join(results)} )" if len(results) > 1 else results[0]
        return f"{left} = {self.op}({', '.join(parts)})"

    def results(self, signature: Signature) -> list[str]:
        """Return the names of the results in the graph."""
        return [f"out_{at}" for at in range(len(signature.results))]

    def graph(self, signature: Signature) -> str:
        """Return the text of a graph of the statement alone."""
        registries = sorted({"tract_core", signature.registry} - {"tract_nnef", ""})
        lines = ["version 1.0;", "", *(f"extension tract_registry {name};" for name in registries), ""]
        externals = [label for name, label, _ in self.tensors() if name not in self.constant]
        results = self.results(signature)
        shown = [f"{name}_shown" for name in results] if self._has_sizes() else results
        lines.append(f"graph case({', '.join(externals)}) -> ({', '.join(shown)})\n{{")
        for name, label, array in self.tensors():
            if name in self.constant:
                lines.append(f'  {label} = variable<scalar>(label = "{label}", shape = {list(array.shape)});')
            else:
                kind = _NAMES[array.dtype]
                lines.append(f'  {label} = tract_core_external(datum_type = "{kind}", shape = {list(array.shape)});')
        lines.append(f"  {self.statement(signature)};")
        if self._has_sizes():
            lines += [f'  {name}_shown = tract_core_cast({name}, to = "i64");' for name in results]
        return "\n".join([*lines, "}", ""])

    def _has_sizes(self) -> bool:
        """Return whether the results are size expressions in some release, which no engine returns as they are."""
        counted = self.op == "tract_core_range" and isinstance(self.arguments["start"], int)
        return counted or self.op == "tract_core_shape_of"

    def write(self, folder: Path, signature: Signature) -> Path:
        """Write the case as an archive that is a folder, and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.nnef").write_text(self.graph(signature), encoding="utf-8")
        for name, label, array in self.tensors():
            if name in self.constant:
                data = np.packbits(array.ravel()).tobytes() if array.dtype == np.bool_ else array.tobytes()
                (folder / f"{label}.dat").write_bytes(header(array.dtype, array.shape) + data)
        return folder

    def wanted(self, definition: Definition) -> tuple[Array, ...]:
        """Return the results that the definition gives, floats in float64."""

        def widened(value: Any) -> Any:
            if isinstance(value, list):
                return [widened(one) for one in value]
            floating = isinstance(value, np.ndarray) and value.dtype.kind == "f"
            return value.astype(np.float64) if floating and not definition.raw else value

        found = definition.function(**{name: widened(value) for name, value in self.arguments.items()})
        return found if isinstance(found, tuple) else (found,)
