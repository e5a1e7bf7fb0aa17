"""Asks a library for names: `python -m t2n_core.releases.scan.child LIBRARY KIND FOLDER`, with names on standard input.

Prints the number of each name before it asks, since some operators end the process at a call without arguments, and
then what the engine has of it, as JSON. `KIND` is one of `KINDS`; graphs are written into `FOLDER`.
"""

from __future__ import annotations

import ctypes as c
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from t2n_core.engine.tract.driver import TractDriver
from t2n_core.errors import EngineError

_NO_DEFINITION: Final = "No definition for operator"
_REGISTRY: Final = re.compile(r'Interrogating registry Identifier\("(\w+)"\)')
_EXPECTED: Final = re.compile(r"expected argument (\w+)\s*$")
_VALUES: Final[Mapping[str, str]] = {
    "tensor": "x", "integer": "1", "scalar": "1.5", "string": '"f32"', "logical": "true", "integer[]": "[1]",
    "tensor[]": "[x]",
}  # fmt: skip
"""Type -> a value of it, in the order in which they are tried."""
_MOST_ARGUMENTS: Final = 24
_Ask: TypeAlias = Callable[[str], Iterator[dict[str, Any]]]
"""Yields what the library has of a name, more of it each time; nothing for a name that it does not have."""


class _Graphs:
    """Graphs of one statement, which the engine is asked to load."""

    def __init__(self, driver: TractDriver, folder: Path) -> None:
        self._driver, self._folder = driver, folder
        names = (name if name.startswith("tract_") else f"tract_{name}" for name in driver.registries)
        self._head = "version 1.0;\n" + "".join(f"extension tract_registry {name};\n" for name in names)

    def load(self, invocation: str) -> str:
        """Return the engine's message; empty if it loads the graph."""
        body = f"  x = external(shape = [3, 4]);\n  y = {invocation};\n"
        (self._folder / "graph.nnef").write_text(f"{self._head}\ngraph g(x) -> (y)\n{{\n{body}}}\n", "utf-8")
        try:
            self._driver.load(self._folder)
        except EngineError as error:
            return error.message
        return ""


def _ask_operator(driver: TractDriver, folder: Path) -> _Ask:
    """Return a function that yields the registry of an operator, if there is one."""
    graphs = _Graphs(driver, folder)

    def ask(name: str) -> Iterator[Any]:
        message = graphs.load(f"{name}()")
        if f'{_NO_DEFINITION} Identifier("{name}")' in message:
            return
        registry = _REGISTRY.findall(message)
        yield {"registry": registry[-1] if registry else ""}

    return ask


def _ask_arguments(driver: TractDriver, folder: Path) -> _Ask:
    """Return a function that yields the arguments of an operator without defaults: [[name, type], …].

    The engine names the first missing argument. Its type is the first whose value the engine takes. Arguments are
    printed as they are found, since a value that does not fit may end the process.
    """
    graphs = _Graphs(driver, folder)

    def ask(name: str) -> Iterator[Any]:
        arguments: dict[str, str] = {}
        while len(arguments) < _MOST_ARGUMENTS:
            text = ", ".join(f"{argument} = {_VALUES[type_]}" for argument, type_ in arguments.items() if type_)
            missing = _EXPECTED.search(graphs.load(f"{name}({text})"))
            if missing is None or missing[1] in arguments:
                break
            yield {"arguments": [*arguments.items(), (missing[1], "")]}
            arguments[missing[1]] = _type_of(graphs, name, text, missing[1])
        yield {"arguments": list(arguments.items())}

    return ask


def _type_of(graphs: _Graphs, name: str, text: str, argument: str) -> str:
    """Return the first type whose value the engine takes for an argument: it then expects another argument."""
    for type_, value in _VALUES.items():
        message = graphs.load(f"{name}({text}{', ' if text else ''}{argument} = {value})")
        expected = _EXPECTED.search(message)
        if not message or (expected is not None and expected[1] != argument):
            return type_
    return ""


def _ask_transform(driver: TractDriver, folder: Path) -> _Ask:
    text = "version 1.0;\ngraph g(x) -> (y)\n{\n  x = external(shape = [3, 4]);\n  y = neg(x);\n}\n"
    (folder / "graph.nnef").write_text(text, "utf-8")

    def ask(name: str) -> Iterator[Any]:
        try:
            driver.load(folder).transform(name)
        except EngineError as error:
            if "could not be found" in error.message:
                return
        yield {}

    return ask


def _ask_runtime(driver: TractDriver, folder: Path) -> _Ask:
    find, handle = driver.find("tract_runtime_for_name"), c.c_void_p()

    def ask(name: str) -> Iterator[Any]:
        if find is None:
            return
        try:
            driver.check(find(name.encode(), c.byref(handle)), EngineError)
        except EngineError as error:
            if "Unknown runtime" in error.message:
                return
        yield {}

    return ask


def _ask_function(driver: TractDriver, folder: Path) -> _Ask:
    def ask(name: str) -> Iterator[Any]:
        if driver.find(name) is not None:
            yield {}

    return ask


KINDS: Final[Mapping[str, Callable[[TractDriver, Path], _Ask]]] = {
    "operator": _ask_operator,
    "arguments": _ask_arguments,
    "transform": _ask_transform,
    "runtime": _ask_runtime,
    "function": _ask_function,
}


def main() -> int:
    """Answer for each name of the standard input."""
    library, kind, folder = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    null = os.open(os.devnull, os.O_WRONLY)  # what the engine prints about a panic
    os.dup2(null, 1)
    os.dup2(null, 2)
    ask = KINDS[kind](TractDriver(Path(library)), Path(folder))
    for number, line in enumerate(sys.stdin):
        print(number, file=out)
        for answer in ask(line.strip()):
            print(json.dumps(answer), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
