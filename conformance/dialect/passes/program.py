"""A program of a few statements, as an archive, and the results that the definitions give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.graphs.evaluation import evaluate
from t2n_core.nnef.dat import header
from t2n_core.nnef.lexical import literal_text
from t2n_core.nnef.spec import spec_for

SYMBOL: Final = "S"
"""The size of the dynamic axis: releases before 0.19.10 know no other symbol."""


@dataclass(frozen=True)
class Name:
    """A value of the program, as an argument."""

    text: str


@dataclass(frozen=True)
class Step:
    """A statement: the operator, its arguments by name, and the values that it computes."""

    op: str
    arguments: Mapping[str, Any]
    results: tuple[str, ...]
    is_list: bool = False
    """True for an operator that returns a list."""

    def reads(self) -> list[str]:
        """Return the values that the statement reads."""
        return _names(list(self.arguments.values()))

    def text(self) -> str:
        """Return the statement as NNEF."""
        listed = ", ".join(self.results)
        left = f"[{listed}]" if self.is_list else listed
        return f"{left} = {self.op}({', '.join(f'{name} = {_text(item)}' for name, item in self.arguments.items())});"


@dataclass(frozen=True)
class Program:
    """Statements over inputs and stored tensors."""

    family: str
    number: int
    """The number of the program in its family."""
    inputs: Mapping[str, Array]
    stored: Mapping[str, Array]
    steps: Sequence[Step]
    outputs: Sequence[str]
    shapes: Mapping[str, Sequence[int]]
    """The shape of every value."""
    dynamic: Mapping[str, int] = field(default_factory=dict)
    """The axis of an input whose extent is a symbol in the graph."""
    fragments: str = ""

    @property
    def name(self) -> str:
        return f"{self.family}-{self.number}"

    def maker(self, name: str) -> Step | None:
        """Return the statement that computes a value; None for an input and a stored tensor."""
        return next((step for step in self.steps if name in step.results), None)

    def readers(self, name: str) -> list[Step]:
        """Return the statements that read a value."""
        return [step for step in self.steps if name in step.reads()]

    def is_in(self, release: str) -> bool:
        """Return whether a release has all operators of the program."""
        spec = spec_for("tract", release)
        return all(spec.has(step.op) for step in self.steps)

    def graph(self) -> str:
        """Return the graph as NNEF."""
        lines = ["version 1.0;", "", "extension tract_registry tract_core;"]
        lines += [f"extension tract_symbol {SYMBOL};"] * bool(self.dynamic)
        lines += ["", *([self.fragments] if self.fragments else [])]
        lines.append(f"graph program({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})\n{{")
        for name, array in self.inputs.items():
            extents: list[Any] = list(array.shape)
            if name in self.dynamic:
                extents[self.dynamic[name]] = SYMBOL
            lines.append(f'  {name} = tract_core_external(datum_type = "f32", shape = [{_listed(extents)}]);')
        for name, array in self.stored.items():
            lines.append(f'  {name} = variable<scalar>(label = "{name}", shape = [{_listed(array.shape)}]);')
        return "\n".join([*lines, *(f"  {step.text()}" for step in self.steps), "}", ""])

    def write(self, folder: Path) -> Path:
        """Write the program as an archive that is a folder, and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.nnef").write_text(self.graph(), encoding="utf-8")
        for name, array in self.stored.items():
            (folder / f"{name}.dat").write_bytes(header(array.dtype, array.shape) + array.tobytes())
        return folder

    def expected(self, archive: Path) -> list[Array]:
        """Return the results that the definitions give for the written program, floats in float64."""
        return [tensor.array for tensor in evaluate(archive, dict(self.inputs)).values()]


def _names(item: Any) -> list[str]:
    if isinstance(item, Name):
        return [item.text]
    return [name for element in item for name in _names(element)] if isinstance(item, list | tuple) else []


def _text(item: Any) -> str:
    if isinstance(item, Name):
        return item.text
    if isinstance(item, list):
        return f"[{', '.join(map(_text, item))}]"
    return f"({', '.join(map(_text, item))})" if isinstance(item, tuple) else literal_text(item)


def _listed(extents: Sequence[Any]) -> str:
    return ", ".join(map(str, extents))
