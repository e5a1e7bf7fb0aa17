"""A case of an operator: arguments, the graph of one statement, and the result that the definition gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from t2n_core.dialect.arrays import DATA_TYPES, Array
from t2n_core.dialect.graphs.evaluation import evaluate
from t2n_core.dialect.operators import functions
from t2n_core.dialect.registry import Definition
from t2n_core.nnef.dat import header
from t2n_core.nnef.lexical import literal_text
from t2n_core.nnef.signatures import Signature
from t2n_core.nnef.spec import signatures_of

_NAMES = {kind: name for name, kind in reversed(DATA_TYPES.items()) if name != "tdim"}


def name_in(name: str, signature: Signature) -> str | None:
    """Return the name of an argument in a release: the only argument of an operator may have another name there."""
    if signature.parameter(name) is None and len(signature.parameters) == 1:
        return signature.parameters[0].name
    return name if signature.parameter(name) is not None else None


_SYMBOL = "S"
"""The size of the dynamic axes: releases before 0.19.10 know no other symbol."""
_COUNTS: Mapping[str, Callable[[Mapping[str, Any]], int]] = {
    "split": lambda arguments: len(arguments["ratios"]),
    "unstack": lambda arguments: int(arguments["value"].shape[arguments["axis"]]),
    "copy_n": lambda arguments: int(arguments["times"]),
    "tract_core_scan": lambda arguments: len(arguments["output"]),
}
"""The number of results of the operators that return a list."""


@dataclass(frozen=True)
class Case:
    """Arguments of an operator, by the names of its signature; tensors are arrays, or lists of arrays."""

    op: str
    arguments: Mapping[str, Any]
    constant: frozenset[str] = field(default_factory=frozenset)
    """The tensors that are stored in the archive, because the engine needs their values to load the graph."""
    dynamic: Mapping[str, int] = field(default_factory=dict)
    """The axis of a tensor whose extent is a symbol in the graph; the same symbol for all tensors."""
    fragments: str = ""
    """Fragments that the statement names, as text."""
    dtype: str = ""
    """The type in angle brackets."""

    def tensors(self) -> Iterator[tuple[str, str, Array]]:
        """Yield each tensor with the argument that it belongs to and its name in the graph."""
        for name, value in self.arguments.items():
            if isinstance(value, np.ndarray):
                yield name, _label(name), value
            elif isinstance(value, list):
                for at, item in enumerate(value):
                    for array in item if isinstance(item, tuple) else (item,):
                        if isinstance(array, np.ndarray):
                            yield name, f"{_label(name)}{at}", array

    def inputs(self) -> list[Array]:
        """Return the tensors that are inputs of the graph, in its order."""
        return [array for name, _, array in self.tensors() if name not in self.constant]

    def statement(self, signature: Signature | None = None) -> str:
        """Return the statement as text, with every argument by its name; of the newest signature if none is given."""
        signature = signature or self._newest()
        parts = [f"{name_in(name, signature)} = {_text(name, value)}" for name, value in self.arguments.items()]
        results = self.results(signature)
        listed = ", ".join(results)
        several = f"( {listed} )" if len(results) > 1 else listed
        generic = f"<{self.dtype}>" if self.dtype else ""
        return f"{f'[{listed}]' if self._is_list() else several} = {self.op}{generic}({', '.join(parts)})"

    def _is_list(self) -> bool:
        return self.op in _COUNTS

    def _newest(self) -> Signature:
        return next(iter(signatures_of(self.op)))

    def results(self, signature: Signature | None = None) -> list[str]:
        """Return the names of the results in the graph."""
        signature = signature or self._newest()
        count = _COUNTS[self.op](self.arguments) if self._is_list() else len(signature.results)
        return [f"out_{at}" for at in range(count)]

    def graph(self, signature: Signature | None = None) -> str:
        """Return the text of a graph of the statement alone, as `statement` writes it."""
        signature = signature or self._newest()
        registries = sorted({"tract_core", signature.registry} - {"tract_nnef", ""})
        lines = ["version 1.0;", "", *(f"extension tract_registry {name};" for name in registries)]
        lines += [f"extension tract_symbol {_SYMBOL};"] * bool(self.dynamic)
        lines += ["", *([self.fragments] if self.fragments else [])]
        externals = [label for name, label, _ in self.tensors() if name not in self.constant]
        results = self.results(signature)
        shown = [f"{name}_shown" for name in results] if self._has_sizes() else results
        lines.append(f"graph case({', '.join(externals)}) -> ({', '.join(shown)})\n{{")
        for name, label, array in self.tensors():
            shape = ", ".join(
                _SYMBOL if self.dynamic.get(name) == axis else str(extent) for axis, extent in enumerate(array.shape)
            )
            if name in self.constant:
                lines.append(f'  {label} = variable<scalar>(label = "{label}", shape = [{shape}]);')
            else:
                kind = _NAMES[array.dtype]
                lines.append(f'  {label} = tract_core_external(datum_type = "{kind}", shape = [{shape}]);')
        lines.append(f"  {self.statement(signature)};")
        if self._has_sizes():
            lines += [f'  {name}_shown = tract_core_cast({name}, to = "i64");' for name in results]
        return "\n".join([*lines, "}", ""])

    def _has_sizes(self) -> bool:
        """Return whether the results are size expressions in some release, which no engine returns as they are."""
        counted = self.op == "tract_core_range" and isinstance(self.arguments["start"], int)
        return counted or self.op == "tract_core_shape_of"

    def write(self, folder: Path, signature: Signature | None = None) -> Path:
        """Write the case as an archive that is a folder, with the text of `graph`, and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.nnef").write_text(self.graph(signature), encoding="utf-8")
        for name, label, array in self.tensors():
            if name in self.constant:
                data = np.packbits(array.ravel()).tobytes() if array.dtype == np.bool_ else array.tobytes()
                (folder / f"{label}.dat").write_bytes(header(array.dtype, array.shape) + data)
        return folder

    def expected(self, definition: Definition | None = None) -> tuple[Array, ...]:
        """Return the results of a definition, by default the operator's, with floats in float64.

        An operator whose definition depends on more than its arguments is evaluated in its graph.
        """
        definition = definition or functions().get(self.op)
        if definition is None:
            return self._evaluated()
        kind = next((array.dtype for _, _, array in self.tensors()), None)

        def in_float64(value: Any) -> Any:
            if isinstance(value, list):
                return [in_float64(item) for item in value]
            if definition.common and kind is not None and isinstance(value, bool | int | float):
                value = np.asarray(value, kind)
            floating = isinstance(value, np.ndarray) and value.dtype.kind == "f"
            return value.astype(np.float64) if floating and not definition.raw else value

        arguments = {
            f"{name}_" if iskeyword(name) else name: in_float64(value) for name, value in self.arguments.items()
        }
        with np.errstate(all="ignore"):
            results = definition.function(**arguments)
        return tuple(map(np.asarray, results if isinstance(results, tuple | list) else (results,)))

    def _evaluated(self) -> tuple[Array, ...]:
        with TemporaryDirectory(prefix="t2n-case-") as folder:
            results = evaluate(self.write(Path(folder)), self.inputs())
        return tuple(tensor.array for tensor in results.values())


def _label(name: str) -> str:
    """Return the name of a tensor, with a prefix if it would be read as the literal `true` or `false`."""
    return f"a_{name}_" if name.startswith(("true", "false")) else f"{name}_"


def _text(name: str, value: Any) -> str:
    """Return an argument as text; names of tensors begin with its own."""
    label = _label(name)
    if isinstance(value, np.ndarray):
        return label
    if not isinstance(value, list):
        return literal_text(value)
    return f"[{', '.join(_item(f'{label}{at}', item) for at, item in enumerate(value))}]"


def _item(label: str, item: Any) -> str:
    if isinstance(item, tuple):
        return f"({', '.join(_item(label, part) for part in item)})"
    return label if isinstance(item, np.ndarray) else literal_text(item)
