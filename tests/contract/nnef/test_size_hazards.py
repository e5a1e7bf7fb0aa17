"""Hazards of dynamic sizes against real engines: refused in the releases that do not load or run the archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for

EXTENTS = {"B": 2, "T": 7, "W": 5}


def convolution(build: Any, *shape: int | str) -> Graph:
    """A convolution of windows of two along each spatial axis; letters are dynamic extents."""
    extents = [symbol(extent) if isinstance(extent, str) else extent for extent in shape]
    build.graph.extensions.extend(f"tract_symbol {letter}" for letter in shape if isinstance(letter, str))
    x = build.input("x", (extents[0], 3, *extents[1:]))
    kernel = np.random.default_rng(5).standard_normal((4, 3, *(2 for _ in shape[1:]))).astype(np.float32)
    result = (extents[0], 4, *(extent - 1 for extent in extents[1:]))
    padding = [(0, 0) for _ in shape[1:]]
    y = build.op("conv", "y", result, input=x, filter=build.variable("w", kernel), padding=padding)
    return build.outputs(y)


def positions(build: Any) -> Graph:
    length = symbol("T")
    build.graph.extensions.append("tract_symbol T")
    x = build.input("x", (2, 3, length))
    sizes = build.op("tract_core_shape_of", "sizes", [3], "i8", input=x)
    last = build.op("slice", "last", [1], "i8", input=sizes, axes=[0], begin=[2], end=[3])
    build.op("squeeze", "T", [], "i8", input=last, axes=[0])
    counted = build.op("tract_core_range", "counted", [length], "i8", start=0, end=length, step=1)
    return build.outputs(build.op("tract_core_cast", "y", [length], "f4", input=counted, to="f32"))


def scores(build: Any) -> Graph:
    length = symbol("T")
    build.graph.extensions.append("tract_symbol T")
    x = build.input("x", (2, length, 3))
    return build.outputs(build.op("matmul", "y", (2, length, length), A=x, B=x, transposeB=True))


CASES: dict[str, tuple[Callable[[Any], Graph], frozenset[str]]] = {
    "batch": (lambda build: convolution(build, "B", 7), frozenset({"0.21.2", "0.21.3"})),
    "batch_and_length": (lambda build: convolution(build, "B", "T"), frozenset()),
    "sum": (lambda build: convolution(build, 2, "T", 5), frozenset({"0.21.0", "0.21.1", "0.21.2", "0.21.3"})),
    "sum_alone": (lambda build: convolution(build, 2, "T"), frozenset()),
    "two": (lambda build: convolution(build, 2, "T", "W"), frozenset({"0.21.0", "0.21.1", "0.21.2", "0.21.3"})),
    "scores": (scores, frozenset({"0.21.14"})),
    "positions": (positions, frozenset({"0.20.19", "0.20.20"})),
}
"""The graph and the releases that refuse it."""


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize(
    "version", "0.20.18 0.20.19 0.20.20 0.20.21 0.21.0 0.21.1 0.21.2 0.21.3 0.21.4 0.21.13 0.21.14 0.21.15".split()
)
def test_refused_exactly_if_it_does_not_run(
    version: str, name: str, build: Any, tract_engine: Any, tmp_path: Path
) -> None:
    make, releases = CASES[name]
    graph = make(build)
    spec = spec_for("tract", version)
    extents = [EXTENTS.get(str(extent), extent) for extent in graph.inputs[0].shape]
    x = np.random.default_rng(3).standard_normal(extents).astype(np.float32)
    reply = tract_engine(version).run(write_archive(graph, tmp_path / "graph", spec=spec), [[x]], timeout=10.0)
    problems = [problem.message for problem in check_graph(graph, spec)]
    assert (reply.status != "ok") == bool(problems) == (version in releases), (reply.message, problems)
