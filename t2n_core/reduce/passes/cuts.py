"""Passes that cut the graph: fewer outputs, the first wrong value as the output, recorded values as inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from t2n_core.nnef.reading.archive import StoredTensor
from t2n_core.nnef.reading.document import Argument, Assignment, Expression, Name, names_in
from t2n_core.reduce.failure import difference
from t2n_core.reduce.judge import WRONG_VALUES
from t2n_core.reduce.minimise import minimise
from t2n_core.reduce.program import Program
from t2n_core.reduce.reduction import Reduction


def fewer_outputs(state: Reduction) -> None:
    """Keep one output, or as few as reproduce the failure: some failures need two."""
    names = list(state.program.outputs)
    if len(names) > 1 and not any(state.take(state.with_outputs(name)) for name in names):
        minimise(names, lambda fewer: state.take(state.with_outputs(*fewer)))


def first_wrong_value(state: Reduction) -> None:
    """Make the first wrong value the output, found in one run that outputs all values."""
    if state.failure.status != WRONG_VALUES:
        return
    names = state.program.results()
    right = state.values(names)
    reply = state.judge.run(state.with_outputs(*names))
    if reply.status != "ok":
        return
    for name, got in zip(names, reply.outputs[0], strict=False):
        if name in right and difference(right[name], got) > state.judge.tolerance:
            if state.take(state.with_outputs(name)):
                _blame(state, name)
            return


def earliest_failing_output(state: Reduction) -> None:
    """Make the earliest result that still fails the output: by bisection, or one by one from the front."""
    names = [assignment.results[0] for assignment in state.program.assignments]
    low, high = 0, len(names) - 1
    best: Program | None = None
    while low <= high:
        middle = (low + high) // 2
        candidate = state.with_outputs(names[middle])
        if state.fails(candidate):
            best, high = candidate, middle - 1
        else:
            low = middle + 1
    if best is not None:
        state.take(best)
        _blame(state, state.program.outputs[0])
        return
    for name in names:
        if state.take(state.with_outputs(name)):
            _blame(state, name)
            return


def _blame(state: Reduction, name: str) -> None:
    if not state.blamed:
        state.blamed = next(
            assignment.operator for assignment in state.program.assignments if name in assignment.results
        )


def with_recorded_values(state: Reduction, assignments: Iterable[Assignment]) -> Program | None:
    """Return the program of these assignments alone: the right values of what they read become inputs.

    A size among them becomes an integer in the text. None if such a value is not known.
    """
    assignments = tuple(assignments)
    program = state.program
    results = {name for assignment in assignments for name in assignment.results}
    inputs = dict(program.inputs)
    sizes: dict[str, int] = {}
    defined = {*results, *inputs, *program.weights}
    missing = {
        str(n)
        for assignment in assignments
        for n in assignment.names()
        if n not in defined and n in set(program.results())
    }
    right = state.values(missing) if missing else {}
    for name in sorted(missing):
        array = right.get(name)
        if array is None:
            return None
        if program.inlines_sizes and array.ndim == 0 and array.dtype.kind in "iu":
            sizes[name] = int(array)
        else:
            inputs[name] = np.ascontiguousarray(array, _plain(array.dtype)).reshape(array.shape)
    fewer = replace(program, inputs=inputs, assignments=assignments)
    return fewer.with_arguments(lambda _, argument: with_sizes(argument.value, sizes)) if sizes else fewer


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype == np.float64 else dtype  # an oracle in float64 widens


def with_sizes(value: Any, sizes: dict[str, int]) -> Any:
    """Return an argument with names of sizes replaced by integers; expressions of them are evaluated."""
    if isinstance(value, Name):
        return sizes.get(value, value)
    if isinstance(value, Expression):
        if not all(name in sizes for name in value.names):
            return value
        words = [str(sizes.get(word, word)) if word != "/" else "//" for word in value.text.split(" ")]
        return _compute(words, value)
    if isinstance(value, list | tuple):
        return type(value)(with_sizes(item, sizes) for item in value)
    return value


def _compute(words: list[str], value: Expression) -> Any:
    """Return the value of an expression of integers, or any other expression unchanged."""
    if all(word.isdigit() or word in ("+", "-", "*", "//", "(", ")") for word in words):
        try:
            return int(eval(" ".join(words), {"__builtins__": {}}))
        except (SyntaxError, ZeroDivisionError):
            return value
    return value


def fewer_declarations(state: Reduction) -> None:
    """Remove the declared shapes of computed values, or as many as the failure does not need."""
    names = list(state.program.declared)

    def attempt(names: list[str]) -> bool:
        declared = {name: declaration for name, declaration in state.program.declared.items() if name in names}
        return state.take(replace(state.program, declared=declared))

    if names and not attempt([]):
        minimise(names, attempt)


def fixed_sizes(state: Reduction) -> None:
    """Replace symbolic sizes by integers, unless computed values declare them, and remove lines about them."""
    if state.program.declared:
        return
    program = state.program
    sizes = {
        str(extent): program.inputs[name].shape[axis]
        for name, axes in program.symbols.items()
        for axis, extent in axes.items()
        if isinstance(extent, Name)
    }
    if program.symbols:
        plain = tuple(extension for extension in program.extensions if extension.startswith("tract_registry"))
        fixed = program.with_arguments(
            lambda _, argument: with_sizes(argument.value, sizes) if program.inlines_sizes else argument.value
        )
        state.take(replace(fixed, symbols={}, extensions=plain))
    for line in state.program.extensions:
        rest = tuple(extension for extension in state.program.extensions if extension != line)
        state.take(replace(state.program, extensions=rest))


def last_assignments(state: Reduction) -> None:
    """Keep the last 1, 2, 4, … assignments, whose operands become inputs with their right values."""
    calls = state.program.assignments
    needed = [call for call in calls if not set(call.results).isdisjoint(state.program.outputs)]
    count = 1
    while count < len(calls):
        last = calls[-count:]
        remaining = [call for call in calls if call in last or call in needed]
        if len(remaining) < len(calls) and state.take(with_recorded_values(state, remaining)):
            return
        count *= 2


def fewer_assignments(state: Reduction) -> None:
    """Remove assignments by delta debugging; what is read of them becomes an input with its right value."""
    outputs = set(state.program.outputs)
    names = [
        assignment.results[0] for assignment in state.program.assignments if outputs.isdisjoint(assignment.results)
    ]

    def attempt(names: list[str]) -> bool:
        chosen = set(names)
        calls = state.program.assignments
        fewer = [call for call in calls if call.results[0] in chosen or not outputs.isdisjoint(call.results)]
        return len(fewer) < len(calls) and state.take(with_recorded_values(state, fewer))

    if names and not attempt([]):
        minimise(names, attempt)


def bypass_assignments(state: Reduction) -> None:
    """Replace the result of an assignment by one of its operands."""
    index = len(state.program.assignments) - 1
    while index >= 0:
        if index < len(state.program.assignments):
            gone = state.program.assignments[index]
            operands = dict.fromkeys(str(name) for a in gone.arguments for name in names_in(a.value))
            any(state.take(_without(state.program, gone, operand)) for operand in operands)
        index -= 1


def _without(program: Program, gone: Assignment, operand: str) -> Program | None:
    def swap(value: Any) -> Any:
        if isinstance(value, Name):
            return Name(operand) if value in gone.results else value
        return type(value)(map(swap, value)) if type(value) in (list, tuple) else value

    if operand in program.outputs:
        return None
    outputs = tuple(operand if name in gone.results else name for name in program.outputs)
    rest = tuple(assignment for assignment in program.assignments if assignment is not gone)
    changed = replace(program, assignments=rest, outputs=outputs)
    return changed.with_arguments(lambda _, argument: swap(argument.value))


def weights_as_inputs(state: Reduction) -> None:
    """Turn weights into inputs, so that the graph is self-contained."""
    for name, weight in list(state.program.weights.items()):
        if not isinstance(weight, StoredTensor):
            rest = {other: other_weight for other, other_weight in state.program.weights.items() if other != name}
            state.take(replace(state.program, inputs={**state.program.inputs, name: weight}, weights=rest))


def merged_inputs(state: Reduction) -> None:
    """Use one tensor instead of two of the same shape and dtype."""
    for first, other in itertools.permutations(list(state.program.inputs), 2):
        tensor, other_tensor = (state.program.inputs.get(name) for name in (first, other))
        if tensor is None or other_tensor is None:
            continue
        if (tensor.shape, tensor.dtype) == (other_tensor.shape, other_tensor.dtype):
            state.take(_merge(state.program, first, other))


def _merge(program: Program, replacement: str, gone: str) -> Program:
    def swap(value: Any) -> Any:
        if isinstance(value, Name):
            return Name(replacement) if value == gone else value
        return type(value)(map(swap, value)) if type(value) in (list, tuple) else value

    return program.with_arguments(lambda _, argument: swap(argument.value))


def plain_arguments(assignment: Assignment) -> list[Argument]:
    """Return the arguments that contain no name of a value."""
    return [argument for argument in assignment.arguments if not any(names_in(argument.value))]
