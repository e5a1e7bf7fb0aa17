"""Passes that simplify details: default arguments, round values, inlined fragments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from t2n_core.nnef.reading.document import Argument, Assignment, FragmentText, Name, replace_names
from t2n_core.reduce.passes.cuts import plain_arguments
from t2n_core.reduce.passes.sizes import with_body
from t2n_core.reduce.program import Array, Program
from t2n_core.reduce.reduction import Reduction


def plainer_arguments(state: Reduction) -> None:
    """Remove arguments, and reduce paddings, strides, windows and flags."""
    for index in range(len(state.program.assignments)):
        for argument in plain_arguments(state.program.assignments[index]):
            any(state.take(candidate) for candidate in _plainer(state.program, index, argument))


def _plainer(program: Program, index: int, argument: Argument) -> Iterator[Program]:
    call = program.assignments[index]
    rest = tuple(other for other in call.arguments if other.name != argument.name)
    yield program.with_assignment(index, replace(call, arguments=rest))
    for value in _smaller(argument):
        arguments = tuple(Argument(a.name, value) if a.name == argument.name else a for a in call.arguments)
        yield program.with_assignment(index, replace(call, arguments=arguments))


def _smaller(argument: Argument) -> Iterator[Any]:
    value = argument.value
    if value is True:
        yield False
    if not isinstance(value, list) or not value:
        return
    pairs = all(isinstance(item, tuple) and all(type(n) is int for n in item) for item in value)
    if pairs:
        for index, item in enumerate(value):
            for smaller in ((0, 0), tuple(int(np.sign(n)) for n in item)):
                if item != smaller:
                    yield [*value[:index], smaller, *value[index + 1 :]]
    elif argument.name in ("size", "stride", "dilation") and all(type(item) is int for item in value):
        for index, item in enumerate(value):
            for less in sorted({1, item - 1}):
                if 1 <= less < item:
                    yield [*value[:index], less, *value[index + 1 :]]


def rounder_numbers(state: Reduction) -> None:
    """Replace elements of float tensors by zeros, ones, integers or rounded values."""
    for name in [*state.program.inputs, *state.program.weights]:
        array = state.program.inputs.get(name, state.program.weights.get(name))
        if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size:
            for rounder in _rounder(array):
                if np.array_equal(rounder, array) or state.take(_with_tensor(state.program, name, rounder)):
                    break


def _rounder(array: Array) -> Iterator[Array]:
    count = array.size
    for flat in (np.zeros(count), np.ones(count), np.arange(count), np.arange(1, count + 1)):
        yield flat.astype(array.dtype).reshape(array.shape)
    yield array.round()
    yield array.round(1)


def _with_tensor(program: Program, name: str, array: Array) -> Program:
    if name in program.inputs:
        return replace(program, inputs={**program.inputs, name: array})
    return replace(program, weights={**program.weights, name: array})


def inlined_fragments(state: Reduction) -> None:
    """Replace the call of a fragment by its body, and a scan by one step."""
    index = 0
    while index < len(state.program.assignments) and not state.judge.is_over:
        if not state.take(_inline(state.program, index)):
            index += 1


def _inline(program: Program, index: int) -> Program | None:
    call = program.assignments[index]
    fragment = program.fragments.get(call.operator)
    if fragment is None or fragment.body is None:
        return None
    arguments_of_call = {argument.name: argument.value for argument in call.arguments}
    signature = program.signatures.find(call.operator)
    for parameter in signature.parameters if signature else ():
        arguments_of_call.setdefault(parameter.name, parameter.default)
    results = dict(zip(fragment.results, call.results, strict=True))
    body = []
    for assignment in fragment.body:
        bound = program.signatures.bind(assignment)
        arguments = tuple(Argument(a.name, _fill(a.value, arguments_of_call, results, call)) for a in bound.arguments)
        result_names = tuple(results.get(name, f"{call.results[0]}_{name}") for name in assignment.results)
        body.append(replace(bound, results=result_names, arguments=arguments))
    calls = program.assignments
    return replace(program, assignments=(*calls[:index], *body, *calls[index + 1 :]))


def plainer_bodies(state: Reduction) -> None:
    """Replace a result by an operand in the bodies of fragments, such as the step of a scan."""
    for name in list(state.program.fragments):
        index = 0
        while not state.judge.is_over:
            fragment = state.program.fragments.get(name)
            if fragment is None or fragment.body is None or index >= len(fragment.body):
                break
            if not any(state.take(candidate) for candidate in _plainer_bodies(state.program, fragment, index)):
                index += 1


def _plainer_bodies(program: Program, fragment: FragmentText, index: int) -> Iterator[Program]:
    body = list(fragment.body or ())
    gone = body[index]
    for operand in dict.fromkeys(gone.names()):
        swap = {name: str(operand) for name in gone.results}
        if not set(swap).isdisjoint(fragment.results):
            continue
        rest = [_rename(assignment, swap) for assignment in (*body[:index], *body[index + 1 :])]
        yield replace(program, fragments={**program.fragments, fragment.name: with_body(fragment, rest)})


def _rename(call: Assignment, swap: dict[str, str]) -> Assignment:
    arguments = tuple(
        Argument(a.name, replace_names(a.value, lambda name: swap.get(name, name))) for a in call.arguments
    )
    return replace(call, arguments=arguments)


def _fill(value: Any, arguments: dict[str, Any], results: dict[str, str], call: Assignment) -> Any:
    """Return an argument of a body with parameters replaced by the call's arguments, and results renamed."""
    if isinstance(value, Name):
        return arguments[value] if value in arguments else Name(results.get(value, f"{call.results[0]}_{value}"))
    if isinstance(value, list | tuple):
        return type(value)(_fill(item, arguments, results, call) for item in value)
    return replace_names(value, lambda name: str(arguments.get(name, results.get(name, name))))
