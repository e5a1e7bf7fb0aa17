"""Loops: a body that is run on one chunk of its scanned inputs after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.run import Run
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import InputError
from t2n_core.nnef.lexical import plain_identifier
from t2n_core.nnef.reading.tree import Call


def scan(run: Run, operation: Call, arguments: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """Return the results of a loop, whose body is a fragment that is run for each chunk of its scanned inputs.

    Formula: step i runs the body on chunk i of each of `scan`, the whole of `full`, and the states, which begin with
    their initial values and continue with the results of the body that `state` names. Of `output`, `full` ones are the
    results of all steps, concatenated along an axis, `last` ones the results of the last step.
    Shapes: extent / |chunk| steps. With a negative chunk the steps go from the end of the axis to its beginning, and an
    output is put together from its end; inside a chunk the order stays.
    Domain: each scanned axis is a multiple of its chunk (the engine fills up the rest with uninitialised memory), and
    gives the same number of steps; `skip` is 0, since the engine runs no body in the first `skip` steps of a stream and
    leaves their results uninitialised; raises InputError. States begin anew in each call.
    Special values: without any step a `full` output is empty, and a `last` one has its initial state.
    Source: tract core/src/ops/scan/optimized.rs, nnef/src/ops/core/scan.rs.
    """
    if arguments["skip"]:
        raise InputError(f"the results of the first {arguments['skip']} steps of the loop are undefined: it skips them")
    arguments = named_in_body(arguments)
    signature, _ = run.body_of(arguments["body"])
    scanned: list[tuple[str, Tensor, int, int]] = arguments["scan"]
    names = [result.name for result in signature.results]
    full_inputs = {name: Tensor(tensor.stored, tensor.dtype) for name, tensor in arguments["full"]}
    states = {name: Tensor(tensor.stored, tensor.dtype) for name, tensor, _ in arguments["state"]}
    next_states = {name: result for name, _, result in arguments["state"]}
    counts = {tensor.shape[axis] / abs(chunk) for _, tensor, axis, chunk in scanned}
    if len(counts) != 1 or not min(counts).is_integer():
        raise InputError(f"the scanned inputs have {sorted(counts)} chunks")

    def step(number: int) -> dict[str, Tensor]:
        chunks = {name: _chunk(tensor, axis, chunk, number) for name, tensor, axis, chunk in scanned}
        results = run.run_fragment(arguments["body"], {**full_inputs, **states, **chunks})
        return dict(zip(names, results if len(names) > 1 else [results], strict=True))

    count = int(counts.pop())
    steps: list[dict[str, Tensor]] = []
    full_outputs = {name for name, kind, *_ in arguments["output"] if kind == "full"}
    last: dict[str, Tensor] = {}
    for number in range(count):
        last = step(number)
        states = {name: last[result] for name, result in next_states.items()}
        steps.append({name: last[name] for name in full_outputs})
    if not last:
        last = step(0)  # over zeros, for the shapes of what is empty
        last.update({result: states[name] for name, result in next_states.items()})
    return tuple(_output(run, output, steps, last) for output in arguments["output"])


def named_in_body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a loop with the names of its body in their plain form, in which the body has them."""
    plain_arguments = {
        kind: [(plain_identifier(name), *rest) for name, *rest in arguments[kind]]
        for kind in ("scan", "full", "state", "output")
    }
    plain_arguments["state"] = [
        (name, tensor, plain_identifier(result)) for name, tensor, result in plain_arguments["state"]
    ]
    return {**arguments, **plain_arguments, "body": plain_identifier(arguments["body"])}


def _chunk(tensor: Tensor, axis: int, chunk: int, number: int) -> Tensor:
    """Return a chunk of a tensor along an axis, counted from its end for a negative size; zeros if it is empty."""
    array = np.moveaxis(tensor.array, axis, 0)
    size = abs(chunk)
    extent = array.shape[0]
    first = extent - (number + 1) * size if chunk < 0 else number * size
    part = array[first : first + size] if extent else np.zeros((size, *array.shape[1:]), array.dtype)
    return Tensor(np.moveaxis(part, 0, axis), tensor.dtype)


def _output(run: Run, output: tuple[Any, ...], steps: list[dict[str, Tensor]], last: Mapping[str, Tensor]) -> Tensor:
    name, kind, axis, chunk = output
    if kind == "last":
        return last[name]
    if kind != "full":
        raise InputError(f"an output of a scan is `full` or `last`, not {kind!r}")
    parts: list[NDArray[Any]] = [step[name].array for step in steps]
    if not parts:
        parts = [np.take(last[name].array, [], axis)]
    joined = np.concatenate(parts[::-1] if chunk < 0 else parts, axis)
    return run.typed(joined, last[name].dtype)
