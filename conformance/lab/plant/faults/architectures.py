"""Exported architectures with one planted statement, which what follows depends on."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np

from conformance.lab.plant.faults.graphs import Draft, Shape
from conformance.lab.plant.faults.plants import PLANTS, Plant
from t2n_core import ExportResult, ModelExport, T2NError, TractNNEF
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.document import Argument, Assignment, Name
from t2n_core.reduce.program import Program

_PLACE: Shape = (2, 8, 40)
"""Shape of the piece that plants are made for."""


def planted_architectures(seed: int, folder: Path) -> Iterator[tuple[str, Plant, Program]]:
    """Yield architectures, each with a plant and its graph, endlessly; those without a place for it are left out.

    Needs the libraries of the suite `models`.
    """
    from conformance.suites.test_models import CASES

    for number, (name, case) in enumerate(cycle(CASES.items())):
        plant = PLANTS[(seed + number) % len(PLANTS)]
        try:
            export = ModelExport(*case.build(zlib.crc32(name.encode())))
            result = export.to(TractNNEF(plant.release), folder / "architecture.nnef.tar")
        except T2NError:
            continue  # a release that cannot hold it
        program = planted_in(result, seed + number, plant)
        if program is not None:
            yield name, plant, program


def planted_in(result: ExportResult, seed: int, plant: Plant) -> Program | None:
    """Return an archive's graph with a plant in its middle; None if no value there is large enough.

    The plant reads a piece of a value of the graph; its mean is added to that value, and it is an output too.
    """
    content = read_archive(result.archive)
    program = Program.of(content, result.samples[0].inputs, Signatures.of("tract", plant.release))
    location = _place(result, program, seed)
    if location is None:
        return None
    value, shape, at = location
    draft = Draft(np.random.default_rng(seed), {value: shape}, prefix="planted")
    flat = draft.call("reshape", [math.prod(shape)], input=value, shape=[math.prod(shape)])
    end = math.prod(_PLACE)
    piece = draft.call("slice", [end], input=flat, axes=[0], begin=[0], end=[end], stride=[1])
    first = draft.call("reshape", _PLACE, input=piece, shape=list(_PLACE))
    draft.shapes = {first: _PLACE}
    draft.start = first
    bad = plant.make(draft)
    rank = len(draft.shapes[bad])
    mean = draft.call("mean_reduce", [1] * rank, input=bad, axes=list(range(rank)))
    alike = draft.call("reshape", [1] * len(shape), input=mean, shape=[1] * len(shape))
    draft.shapes[value] = shape
    changed = draft.call("add", shape, x=value, y=alike)
    before, after = program.assignments[:at], program.assignments[at:]
    renamed = tuple(_reading(assignment, value, changed) for assignment in after)
    outputs = tuple(changed if name == value else name for name in program.outputs)
    return Program(
        program.inputs,
        {**program.weights, **draft.weights},
        (*before, *draft.calls, *renamed),
        (*outputs, bad),
        program.signatures,
        tuple(dict.fromkeys((*program.extensions, "tract_registry tract_core"))),
        program.fragments,
        program.symbols,
    )


def _place(result: ExportResult, program: Program, seed: int) -> tuple[str, Shape, int] | None:
    """Return a large value of the middle of the graph, its shape, and the place after its statement.

    It depends on an input: an engine computes what depends on constants alone while it loads the graph.
    """
    computed = {str(name) for name in program.inputs}
    for assignment in program.assignments:
        if not computed.isdisjoint(assignment.names()):
            computed.update(assignment.results)
    shapes = {v.name: v.shape for op in result.graph.operations for v in op.outputs if v.dtype == np.float32}
    usable = [
        (name, tuple(map(int, shapes[name])), index + 1)
        for index, assignment in enumerate(program.assignments)
        for name in assignment.results
        if name in computed and name in shapes and math.prod(map(int, shapes[name])) >= math.prod(_PLACE)
    ]
    third = len(program.assignments) // 3
    middle = [candidate for candidate in usable if third <= candidate[2] <= 2 * third] or usable
    return middle[int(np.random.default_rng(seed).integers(len(middle)))] if middle else None


def _reading(assignment: Assignment, value: str, instead: str) -> Assignment:
    """Return an assignment with `value` replaced by `instead`."""

    def changed(original: object) -> object:
        if isinstance(original, Name) and original == Name(value):
            return Name(instead)
        if isinstance(original, list | tuple):
            return type(original)(changed(item) for item in original)
        return original

    return replace(assignment, arguments=tuple(Argument(a.name, changed(a.value)) for a in assignment.arguments))
