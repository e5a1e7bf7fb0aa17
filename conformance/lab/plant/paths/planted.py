"""Faults that are planted into the exporter, and into what judges a bundle, for one process.

python -m conformance.lab.plant.paths.planted FAULT pytest|t2n ARGUMENT …

Runs pytest or t2n with the fault, and ends with its status.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.engine import TractEngine

_HEADER: Final = re.compile(r"graph (\w+)\((.*)\) -> \((.*)\)$")


def _change_lines(change: Callable[[str], str]) -> None:
    from t2n_core.nnef import writer

    original = writer._lines

    def lines(*arguments: Any) -> Iterator[str]:
        return map(change, original(*arguments))

    writer._lines = lines


def _exchange_inputs() -> None:
    """Write the inputs of each graph in the other order."""

    def change(line: str) -> str:
        header = _HEADER.match(line)
        if header is None:
            return line
        return f"graph {header[1]}({', '.join(header[2].split(', ')[::-1])}) -> ({header[3]})"

    _change_lines(change)


def _rename_outputs() -> None:
    """Exchange the names of the first two outputs, whose places stay as they are."""
    names: dict[str, str] = {}

    def change(line: str) -> str:
        if header := _HEADER.match(line):
            first, second, *_ = [*header[3].split(", "), "", ""]
            names.update({first: second, second: first} if second else {})
        return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), line)

    _change_lines(change)


def _other_operator() -> None:
    """Write another operator for each tanh."""
    _change_lines(lambda line: line.replace(" = tanh(", " = sigmoid("))


def _change_glue() -> None:
    """Write the statements of a program with 1 added to each integer."""
    from t2n_core.program import export

    original = export.manifest_of

    def manifest(*arguments: Any) -> dict[str, Any]:
        content = original(*arguments)
        return {**content, "statements": [_plus_one(statement) for statement in content["statements"]]}

    export.manifest_of = manifest


def _plus_one(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plus_one(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plus_one(item) for item in value]
    return value + 1 if type(value) is int else value


def _change_answers() -> None:
    """Double what the engine answers."""
    original = TractEngine.run

    def run(self: TractEngine, *arguments: Any, **options: Any) -> EngineReply:
        reply = original(self, *arguments, **options)
        return replace(reply, outputs=tuple(tuple(array * 2 for array in batch) for batch in reply.outputs))

    TractEngine.run = run  # type: ignore[method-assign]


FAULTS: Final[Mapping[str, Callable[[], None]]] = {
    "none": lambda: None,
    "inputs exchanged": _exchange_inputs,
    "outputs renamed": _rename_outputs,
    "another operator": _other_operator,
    "other glue": _change_glue,
    "other answers": _change_answers,
}


def main(arguments: Sequence[str]) -> int:
    """Plant a fault, and run a command."""
    fault, command, *words = arguments
    FAULTS[fault]()
    if command == "pytest":
        import pytest

        return int(pytest.main(words))
    from pytest_t2n.cli import main as t2n

    return t2n(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
