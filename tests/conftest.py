"""Fixtures for every test. Engines come from the user's normal cache, so that each wheel is downloaded once."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from t2n_core.engine import ResolvedEngine, close_all, engine_for, resolve_engines
from t2n_core.engine.pool import TractRunner
from t2n_core.errors import Origin
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import Graph, Operation, Value
from t2n_core.nnef.sizes.dims import Dim

# Workers of xdist share the cores already: threads of torch would wait for each other at full load. Set before torch
# is imported, and kept by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")


FIRST = ("tests/contract/source/test_types.py", "tests/plugin/", "tests/browser/")
"""What takes seconds for each test; it runs first, so that no worker of xdist is alone with it at the end."""
LAST = (
    "test_every_rule_has_a_case",
    "test_every_operator_with_a_rule_has_a_case",
    "test_every_decomposition_has_a_case",
)
"""They read what the tests of the cases have noted, and export again each case that has not run yet."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (item.name.partition("[")[0] in LAST, not item.nodeid.startswith(FIRST)))


def pytest_collection_finish() -> None:
    """Exempt what is loaded by now from garbage collection, which else takes a tenth of the time of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def resolved_engine() -> Callable[[str], ResolvedEngine]:
    """A function from one exact version to its files on this machine."""
    cache: dict[str, ResolvedEngine] = {}

    def resolve(version: str) -> ResolvedEngine:
        if version not in cache:
            (cache[version],) = resolve_engines(version)
        return cache[version]

    return resolve


@pytest.fixture(scope="module", autouse=True)
def engines_of_module(request: pytest.FixtureRequest, resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    """Put the engines that a module names as ENGINES_IN_CACHE into the cache: its tests fetch none."""
    for version in getattr(request.module, "ENGINES_IN_CACHE", ()):
        resolved_engine(version)


@pytest.fixture(scope="session")
def tract_engine(resolved_engine: Callable[[str], ResolvedEngine]) -> Iterator[Callable[[str], TractRunner]]:
    """A function from one exact version to a running engine: `tract_engine("0.21.19").run(archive, batches)`."""
    yield lambda version: engine_for(resolved_engine(version))
    close_all()


class GraphBuilder:
    """Writes NNEF graphs by hand, with whatever a test wants to be wrong in them."""

    def __init__(self) -> None:
        self.graph = Graph()

    def input(self, name: str, shape: Sequence[Dim], dtype: str = "f4", operator: str = "") -> Value:
        kind = np.dtype(dtype)
        value = Value(name, kind, tuple(shape))
        operator = operator or ("external" if kind == np.float32 else "tract_core_external")
        typed = {"datum_type": f"{kind.kind}{kind.itemsize * 8}".replace("b8", "bool")}
        self._add(operator, {"shape": list(shape)} | (typed if operator == "tract_core_external" else {}), (value,), "")
        self.graph.inputs.append(value)
        return value

    def variable(self, label: str, array: NDArray[Any]) -> Value:
        value = Value(re.sub(r"\W", "_", label), array.dtype, array.shape, weight=ArrayWeight(array))
        word = {"f": "scalar", "b": "logical", "i": "integer", "u": "integer"}[array.dtype.kind]
        self._add("variable", {"shape": list(array.shape), "label": label}, (value,), word)
        return value

    def op(self, operator: str, name: str, shape: Sequence[Dim], dtype: str = "f4", /, **arguments: Any) -> Value:
        value = Value(name, np.dtype(dtype), tuple(shape))
        self._add(operator, arguments, (value,), "")
        return value

    def ops(self, operator: str, results: Mapping[str, Sequence[Dim]], /, **arguments: Any) -> tuple[Value, ...]:
        values = tuple(Value(name, np.dtype("f4"), tuple(shape)) for name, shape in results.items())
        self._add(operator, arguments, values, "")
        return values

    def outputs(self, *values: Value) -> Graph:
        self.graph.outputs = list(values)
        return self.graph

    def _add(self, operator: str, arguments: dict[str, Any], values: tuple[Value, ...], dtype: str) -> None:
        operation = Operation(operator, arguments, values, Origin(f"test::{operator}"), dtype)
        for value in values:
            value.producer = operation
        self.graph.operations.append(operation)


@pytest.fixture
def build() -> GraphBuilder:
    return GraphBuilder()
