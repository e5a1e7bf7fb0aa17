"""Runs a program of several archives: the statements of a `program.json`, with numpy alone.

    python driver.py FOLDER inputs.npz outputs.npz

runs the program of a folder in tract, which needs the wheels of numpy and tract. This file imports nothing else, and
may be copied into a product.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Values = dict[str, Any]
"""The variables of a program: numpy arrays by name."""
Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Runs an archive: takes its name in the program and its inputs by name, and returns its outputs by name."""
MOST_TURNS = 1_000_000
"""Most turns of a loop; a program that takes more does not end."""


def _size(array: Any, axis: Any) -> Any:
    return np.int64(array.shape[int(axis)])


def _slice(array: Any, axis: Any, begin: Any, end: Any) -> Any:
    places = [slice(None)] * array.ndim
    places[int(axis)] = slice(int(begin), int(end))
    return array[tuple(places)]


def _full(shape: Any, value: Any, dtype: str) -> Any:
    return np.full([int(extent) for extent in shape], value, dtype)


def _reshape(array: Any, shape: Any) -> Any:
    return np.asarray(array).reshape([int(extent) for extent in shape])


def _replace(array: Any, mask: Any, rows: Any) -> Any:
    """Return a copy of `array` with the elements, or rows, at the places of `mask` replaced by `rows`, in order."""
    if int(mask.sum()) != len(rows):
        raise ValueError(f"replace: {len(rows)} rows for {int(mask.sum())} places")
    result = np.array(array)
    result[mask] = rows
    return result


OPERATIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul": (2, np.multiply),
    "floor_div": (2, np.floor_divide),
    "mod": (2, np.mod),
    "max": (2, np.maximum),
    "min": (2, np.minimum),
    "equal": (2, np.equal),
    "less": (2, np.less),
    "less_equal": (2, np.less_equal),
    "not": (1, np.logical_not),
    "and": (2, np.logical_and),
    "or": (2, np.logical_or),
    "where": (3, np.where),
    "round": (1, np.rint),
    "exp": (1, np.exp),
    "size": (2, _size),
    "slice": (4, _slice),
    "concat": (3, lambda axis, array, other: np.concatenate([array, other], int(axis))),
    "argmax": (2, lambda array, axis: np.argmax(array, int(axis)).astype(np.int64)),
    "sum": (2, lambda array, axis: np.sum(array, int(axis), dtype=array.dtype)),
    "gather": (3, lambda array, places, axis: np.take(array, places, int(axis))),
    "repeat": (3, lambda array, counts, axis: np.repeat(array, counts, int(axis))),
    "range": (1, lambda end: np.arange(int(end), dtype=np.int64)),
    "reshape": (2, _reshape),
    "cast": (2, lambda array, dtype: np.asarray(array).astype(dtype)),
    "full": (3, _full),
    "replace": (3, _replace),
}
"""The operations of expressions, by name: the number of their operands, and their meaning."""


def evaluate(expression: Any, values: Values) -> Any:
    """Return the value of an expression.

    A text is a variable, a number or boolean is itself, `{"text": "int64"}` and `{"list": [...]}` are a text and a list
    of expressions, and `["add", a, b]` is an operation.
    """
    if isinstance(expression, str):
        return values[expression]
    if isinstance(expression, Mapping):
        if "text" in expression:
            return expression["text"]
        return [evaluate(item, values) for item in expression["list"]]
    if isinstance(expression, Sequence):
        name, *operands = expression
        return OPERATIONS[name][1](*(evaluate(operand, values) for operand in operands))
    return expression  # a number of Python, which takes the data type of the array beside it


def execute(statements: Sequence[Mapping[str, Any]], values: Values, call: Call) -> None:
    """Run statements in order; they read and set variables."""
    for statement in statements:
        if "run" in statement:
            inputs = {name: np.asarray(evaluate(argument, values)) for name, argument in statement["inputs"].items()}
            outputs = call(statement["run"], inputs)
            values.update({variable: outputs[name] for name, variable in statement["outputs"].items()})
        elif "let" in statement:
            for name, expression in statement["let"].items():
                values[name] = np.asarray(evaluate(expression, values))
        elif "if" in statement:
            branch = "then" if bool(evaluate(statement["if"], values)) else "else"
            execute(statement.get(branch, []), values, call)
        else:
            for _ in range(MOST_TURNS):
                if not bool(evaluate(statement["while"], values)):
                    break
                execute(statement["do"], values, call)
            else:
                raise RuntimeError(f"the loop {statement['while']} did not end after {MOST_TURNS} turns")


def run_program(program: Mapping[str, Any], inputs: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """Return the outputs of a program by name; `call` runs its archives."""
    missing = [name for name in program["inputs"] if name not in inputs]
    if missing:
        raise ValueError(f"the program needs {', '.join(missing)}")
    values: Values = {name: np.asarray(inputs[name]) for name in program["inputs"]}
    execute(program["statements"], values, call)
    return {name: values[name] for name in program["outputs"]}


def tract_call(folder: Path, program: Mapping[str, Any]) -> Call:
    """Return a function that runs the archives of a folder by the wheel of tract."""
    import tract

    loader = tract.nnef()
    for registry in ("tract_core", "tract_extra", "tract_transformers", "pulse", "onnx"):
        loader = getattr(loader, f"with_{registry}", lambda loader=loader: loader)()  # names differ between releases

    def load(path: Path) -> Any:
        if hasattr(loader, "load"):  # from 0.23 on
            return loader.load(str(path)).into_runnable()
        return loader.model_for_path(str(path)).into_optimized().into_runnable()

    models = {name: load(folder / part["archive"]) for name, part in program["parts"].items()}

    def call(name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        part = program["parts"][name]
        outputs = models[name].run([np.ascontiguousarray(inputs[input_name]) for input_name in part["inputs"]])
        return {output_name: output.to_numpy() for output_name, output in zip(part["outputs"], outputs, strict=True)}

    return call


def main(folder: str, inputs: str, outputs: str) -> None:
    """Run the program of a folder on the arrays of an npz file, and write its outputs to another."""
    program = json.loads((Path(folder) / "program.json").read_text(encoding="utf-8"))
    with np.load(inputs) as arrays:
        results = run_program(program, dict(arrays), tract_call(Path(folder), program))
    np.savez(outputs, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
